//! Secrets: sealed, by tenant and name.

use model::{HostPattern, Sealed, Secret, SecretName, Tenant, TenantId, TenantName, limits};

use super::{Kept, Subject, at};
use crate::{AuditRange, BoxError, SecretPut, TenantDropped};

const OTHER: TenantId = TenantId(uuid::Uuid::from_u128(7));
/// Some name that keys have.
const KEY: &str = "0a1b2c3d";

fn name(text: &str) -> Result<SecretName, BoxError> {
    Ok(SecretName::new(text)?)
}

pub(super) fn secret(tenant: TenantId, text: &str) -> Result<Secret, BoxError> {
    Ok(Secret {
        tenant,
        name: name(text)?,
        version: 1,
        hosts: vec![
            HostPattern::new("*.example.com")?,
            HostPattern::new("[::1]")?,
        ],
        note: Some("für „ci“".to_owned()),
        created_at: at(1),
        updated_at: at(2),
        sealed: Sealed {
            master_key: KEY.to_owned(),
            wrapped: vec![0, 1, 255],
            value: (0..=255).collect(),
        },
    })
}

async fn put(subject: &Subject, secrets: &[Secret]) -> Kept {
    let store = subject.store.access();
    if secrets.iter().any(|secret| secret.tenant == OTHER) {
        let tenant = Tenant::new(OTHER, TenantName::new("other")?, at(0));
        store.create_tenant(&tenant).await?;
    }
    for secret in secrets {
        assert_eq!(store.put_secret(secret, None).await?, SecretPut::Done);
    }
    Ok(())
}

pub async fn a_secret_reads_back_whole(subject: Subject) -> Kept {
    let (one, two) = (secret(TenantId::DEFAULT, "a")?, secret(OTHER, "a")?);
    let two = Secret {
        note: None,
        hosts: Vec::new(),
        ..two
    };
    put(&subject, &[one.clone(), two.clone()]).await?;
    let store = subject.store.access();
    for secret in [one, two] {
        let read = store.get_secret(secret.tenant, &secret.name).await?;
        assert_eq!(read, Some(secret));
    }
    assert_eq!(store.get_secret(OTHER, &name("b")?).await?, None);
    Ok(())
}

pub async fn a_secret_is_written_over_the_version_that_was_seen(subject: Subject) -> Kept {
    let first = secret(TenantId::DEFAULT, "a")?;
    put(&subject, std::slice::from_ref(&first)).await?;
    let store = subject.store.access();
    let second = Secret {
        version: 2,
        hosts: vec![HostPattern::new("localhost")?],
        note: None,
        updated_at: at(9),
        sealed: Sealed {
            master_key: "ffffffff".to_owned(),
            wrapped: vec![7],
            value: vec![8],
        },
        ..first.clone()
    };
    for before in [None, Some(2)] {
        let put = store.put_secret(&second, before).await?;
        assert_eq!(put, SecretPut::Conflict);
    }
    let stands = store.get_secret(first.tenant, &first.name).await?;
    assert_eq!(stands, Some(first));
    let put = store.put_secret(&second, Some(1)).await?;
    assert_eq!(put, SecretPut::Done);
    let stands = store.get_secret(second.tenant, &second.name).await?;
    assert_eq!(stands, Some(second.clone()));
    let other = secret(TenantId::DEFAULT, "b")?;
    let put = store.put_secret(&other, Some(1)).await?;
    assert_eq!(put, SecretPut::Conflict, "there is none to write over");
    Ok(())
}

pub async fn secrets_are_listed_by_name_page_by_page(subject: Subject) -> Kept {
    let mut secrets = Vec::new();
    for name in ["c", "a-b", "a", "b", "a.b"] {
        secrets.push(secret(TenantId::DEFAULT, name)?);
    }
    secrets.push(secret(OTHER, "d")?);
    put(&subject, &secrets).await?;
    let store = subject.store.access();
    let mut names = Vec::new();
    let mut after = None;
    for expected in [2, 2, 1, 0] {
        let listed = store.list_secrets(TenantId::DEFAULT, after.as_ref(), 2);
        let listed = listed.await?;
        assert_eq!(listed.len(), expected);
        after = listed.last().map(|secret| secret.name.clone()).or(after);
        names.extend(listed.into_iter().map(|secret| secret.name.to_string()));
    }
    assert_eq!(names, ["a", "a-b", "a.b", "b", "c"]);
    Ok(())
}

pub async fn a_secret_that_was_dropped_is_gone(subject: Subject) -> Kept {
    let (ours, theirs) = (secret(TenantId::DEFAULT, "a")?, secret(OTHER, "a")?);
    put(&subject, &[ours.clone(), theirs.clone()]).await?;
    let store = subject.store.access();
    assert!(store.drop_secret(OTHER, &theirs.name).await?);
    assert!(!store.drop_secret(OTHER, &theirs.name).await?);
    assert_eq!(store.get_secret(OTHER, &theirs.name).await?, None);
    let stands = store.get_secret(ours.tenant, &ours.name).await?;
    assert_eq!(stands, Some(ours.clone()));
    // Made again, it begins again.
    assert_eq!(store.put_secret(&theirs, None).await?, SecretPut::Done);
    Ok(())
}

/// What nobody can write a name for: it is kept as any other, and its change is entered as one of its tenant.
pub async fn a_proxy_is_kept_as_a_secret_and_entered_as_a_change_of_its_tenant(
    subject: Subject,
) -> Kept {
    let shown = "http://ann:***@proxy.example:3128";
    let proxy = Secret {
        name: SecretName::of_proxy(),
        hosts: Vec::new(),
        note: Some(shown.to_owned()),
        ..secret(OTHER, "a")?
    };
    put(&subject, std::slice::from_ref(&proxy)).await?;
    let store = subject.store.access();
    let stands = store.get_secret(OTHER, &proxy.name).await?;
    assert_eq!(stands.as_ref(), Some(&proxy));
    assert!(store.drop_secret(OTHER, &proxy.name).await?);
    let entries = store.list_audit(&AuditRange::ALL).await?;
    let said: Vec<_> = entries
        .iter()
        .map(|entry| (entry.action.as_str(), entry.after.clone()))
        .collect();
    let set = format!(r#"{{"proxy":"{shown}"}}"#);
    let gone = r#"{"proxy":null}"#.to_owned();
    let expected = [("tenant.edit", Some(set)), ("tenant.edit", Some(gone))];
    assert!(said.ends_with(&expected), "{said:?}");
    Ok(())
}

pub async fn every_change_of_a_secret_is_noticed(subject: Subject) -> Kept {
    let store = subject.store.access();
    let mut seen = vec![store.secret_change().await?];
    let first = secret(TenantId::DEFAULT, "a")?;
    put(&subject, std::slice::from_ref(&first)).await?;
    seen.push(store.secret_change().await?);
    let second = Secret {
        version: 2,
        ..first.clone()
    };
    store.put_secret(&second, Some(1)).await?;
    seen.push(store.secret_change().await?);
    store.rewrap_secrets(std::slice::from_ref(&second)).await?;
    seen.push(store.secret_change().await?);
    store.drop_secret(first.tenant, &first.name).await?;
    seen.push(store.secret_change().await?);
    let mut grown = seen.clone();
    grown.sort_unstable();
    grown.dedup();
    assert_eq!(seen, grown, "it grows with each");
    Ok(())
}

pub async fn secrets_under_another_master_key_are_rewrapped(subject: Subject) -> Kept {
    let mut secrets = Vec::new();
    for (tenant, name) in [
        (TenantId::DEFAULT, "a"),
        (TenantId::DEFAULT, "b"),
        (OTHER, "a"),
    ] {
        secrets.push(secret(tenant, name)?);
    }
    put(&subject, &secrets).await?;
    let store = subject.store.access();
    assert!(store.secrets_not_under(KEY, None, 9).await?.is_empty());
    let mut after = None;
    let mut rewrapped = Vec::new();
    for expected in [2, 1, 0] {
        let mut page = store.secrets_not_under("new", after.as_ref(), 2).await?;
        assert_eq!(page.len(), expected);
        for secret in &mut page {
            secret.sealed.master_key = "new".to_owned();
            secret.sealed.wrapped = vec![9];
            // Only what a rewrap changes is written.
            secret.sealed.value = Vec::new();
        }
        let last = page.last().map(|it| (it.tenant, it.name.clone()));
        after = last.or(after);
        rewrapped.extend(page);
    }
    // One was changed meanwhile.
    let changed = Secret {
        version: 2,
        ..secrets[1].clone()
    };
    store.put_secret(&changed, Some(1)).await?;
    assert_eq!(store.rewrap_secrets(&rewrapped).await?, 2);
    let counts = store.count_secrets().await?;
    assert_eq!(counts, [(KEY.to_owned(), 1), ("new".to_owned(), 2)]);
    let mut expected = secrets[0].clone();
    expected.sealed.master_key = "new".to_owned();
    expected.sealed.wrapped = vec![9];
    let stands = store.get_secret(expected.tenant, &expected.name).await?;
    assert_eq!(stands, Some(expected));
    let left = store.secrets_not_under("new", None, 9).await?;
    assert_eq!(left, [changed]);
    Ok(())
}

pub async fn a_secret_belongs_to_a_tenant_that_is_there(subject: Subject) -> Kept {
    let store = subject.store.access();
    let theirs = secret(OTHER, "a")?;
    let refused = store.put_secret(&theirs, None).await?;
    assert_eq!(refused, SecretPut::NoTenant);
    let ours = secret(TenantId::DEFAULT, "a")?;
    put(&subject, &[theirs.clone(), ours.clone()]).await?;
    let dropped = store.drop_tenant(OTHER, at(1)).await?;
    assert_eq!(dropped, TenantDropped::Done);
    assert_eq!(store.get_secret(OTHER, &theirs.name).await?, None);
    let stands = store.get_secret(ours.tenant, &ours.name).await?;
    assert_eq!(stands, Some(ours));
    Ok(())
}

pub async fn a_tenant_has_so_many_secrets_and_no_more(subject: Subject) -> Kept {
    let store = subject.store.access();
    for number in 0..limits::SECRETS_MAX {
        let secret = secret(TenantId::DEFAULT, &format!("a{number}"))?;
        assert_eq!(store.put_secret(&secret, None).await?, SecretPut::Done);
    }
    let more = secret(TenantId::DEFAULT, "b")?;
    assert_eq!(store.put_secret(&more, None).await?, SecretPut::Full);
    let again = Secret {
        version: 2,
        ..secret(TenantId::DEFAULT, "a0")?
    };
    assert_eq!(store.put_secret(&again, Some(1)).await?, SecretPut::Done);
    put(&subject, &[secret(OTHER, "b")?]).await
}
