//! Opening: whether a database can be used at all.

use super::pool::Conn;
use crate::StoreError;

/// Texts of clients and targets are any Unicode, and ours are not all ASCII. What converts them refuses rows for a
/// character; what takes bytes as they are holds them all.
pub(super) async fn check_encoding(conn: &Conn) -> Result<(), StoreError> {
    let row = conn.row(include_str!("sql/encoding.sql"), &[]).await?;
    let encoding: String = row.map_or_else(String::new, |row| row.get(0));
    match encoding.as_str() {
        "UTF8" | "SQL_ASCII" => Ok(()),
        _ => Err(StoreError::Unusable(format!(
            "the database is encoded in {encoding}, which cannot hold every text: make one with ENCODING 'UTF8'"
        ))),
    }
}
