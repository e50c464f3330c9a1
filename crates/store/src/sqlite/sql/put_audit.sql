-- A change is entered in the transaction that makes it.
INSERT INTO audit ({audit})
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
