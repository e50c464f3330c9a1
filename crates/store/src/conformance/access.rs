//! Keys: who may call.

use model::{
    AccessKey, KeyId, QueueName, Role, Tenant, TenantEdit, TenantId, TenantName, Timestamp, limits,
};

use super::{Kept, Subject, at};
use crate::{AccessStore, KeyChanges, KeyCreated, KeyRevoked, Page, TenantCreated, TenantDropped};

const OTHER: TenantId = TenantId(uuid::Uuid::from_u128(7));

/// A key of the tenant that is always there; those with greater numbers are newer.
fn key(number: u8, role: Role) -> AccessKey {
    AccessKey {
        id: KeyId::from_bytes([number; 16]),
        tenant: TenantId::DEFAULT,
        role,
        label: None,
        digest: [number; 32],
        created_at: at(0),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
        queues: Vec::new(),
    }
}

fn whole() -> AccessKey {
    AccessKey {
        tenant: OTHER,
        label: Some("für „ci“".to_owned()),
        digest: std::array::from_fn(|at| at as u8),
        created_at: at(1),
        expires_at: Some(at(100)),
        last_used_at: Some(at(2)),
        revoked_at: Some(at(3)),
        ..key(9, Role::Operator)
    }
}

fn tenant(id: TenantId, name: &str) -> Result<Tenant, crate::BoxError> {
    Ok(Tenant::new(id, TenantName::new(name)?, at(0)))
}

async fn put(store: &dyn AccessStore, keys: &[AccessKey]) -> Kept {
    if keys.iter().any(|key| key.tenant == OTHER) {
        let created = store.create_tenant(&tenant(OTHER, "other")?).await?;
        assert_eq!(created, TenantCreated::Done);
    }
    for key in keys {
        assert_eq!(store.create_key(key).await?, KeyCreated::Done);
    }
    Ok(())
}

fn page(before: Option<KeyId>, limit: usize) -> Page<KeyId> {
    Page { before, limit }
}

fn by_id(mut changes: KeyChanges) -> KeyChanges {
    changes.keys.sort_by_key(|key| key.id);
    changes
}

pub async fn a_key_reads_back_whole(subject: Subject) -> Kept {
    let store = subject.store.access();
    let plain = key(1, Role::Root);
    put(store, &[plain.clone(), whole()]).await?;
    let id = plain.id;
    assert_eq!(store.get_key(TenantId::DEFAULT, id).await?, Some(plain));
    assert_eq!(store.get_key(OTHER, whole().id).await?, Some(whole()));
    let queues = ["gpu", "mail.bulk"].map(QueueName::new);
    let worker = AccessKey {
        queues: queues.into_iter().collect::<Result<_, _>>()?,
        ..key(10, Role::Worker)
    };
    put(store, std::slice::from_ref(&worker)).await?;
    let listed = store.list_keys(TenantId::DEFAULT, page(None, 1)).await?;
    assert_eq!(listed, [worker]);
    for role in Role::ALL {
        let key = key(20 + role as u8, role);
        put(store, std::slice::from_ref(&key)).await?;
        assert_eq!(store.get_key(key.tenant, key.id).await?, Some(key));
    }
    Ok(())
}

pub async fn keys_are_listed_newest_first_page_by_page(subject: Subject) -> Kept {
    let store = subject.store.access();
    let keys: Vec<_> = (1..=5).map(|number| key(number, Role::Reader)).collect();
    put(store, &keys).await?;
    let mut listed = Vec::new();
    let mut before = None;
    for expected in [2, 2, 1, 0] {
        let found = store.list_keys(TenantId::DEFAULT, page(before, 2)).await?;
        assert_eq!(found.len(), expected);
        before = found.last().map(|key| key.id);
        listed.extend(found);
    }
    listed.reverse();
    assert_eq!(listed, keys);
    Ok(())
}

pub async fn a_tenant_sees_only_its_own_keys(subject: Subject) -> Kept {
    let store = subject.store.access();
    let (ours, theirs) = (
        key(1, Role::Admin),
        AccessKey {
            tenant: OTHER,
            ..key(2, Role::Admin)
        },
    );
    put(store, &[ours.clone(), theirs.clone()]).await?;
    assert_eq!(store.get_key(OTHER, ours.id).await?, None);
    assert_eq!(
        store.list_keys(OTHER, page(None, 9)).await?,
        std::slice::from_ref(&theirs)
    );
    let revoked = store.revoke_key(OTHER, ours.id, at(1)).await?;
    assert_eq!(revoked, KeyRevoked::Missing);
    assert_eq!(store.get_key(ours.tenant, ours.id).await?, Some(ours));
    Ok(())
}

pub async fn changes_of_keys_are_seen_from_any_change_on(subject: Subject) -> Kept {
    let store = subject.store.access();
    assert_eq!(store.keys_since(0).await?, KeyChanges::default());
    let (first, second) = (key(1, Role::Reader), key(2, Role::Reader));
    put(store, std::slice::from_ref(&first)).await?;
    let one = store.keys_since(0).await?;
    assert_eq!(one.keys, std::slice::from_ref(&first));
    put(store, std::slice::from_ref(&second)).await?;
    let two = store.keys_since(one.change).await?;
    assert!(two.change > one.change);
    assert_eq!(two.keys, std::slice::from_ref(&second));
    store.revoke_key(first.tenant, first.id, at(5)).await?;
    let three = store.keys_since(two.change).await?;
    let revoked = AccessKey {
        revoked_at: Some(at(5)),
        ..first
    };
    assert_eq!(three.keys, std::slice::from_ref(&revoked));
    let all = by_id(store.keys_since(0).await?);
    assert_eq!(all.keys, [revoked, second]);
    let none = store.keys_since(three.change).await?;
    assert_eq!((none.change, none.keys.len()), (three.change, 0));
    Ok(())
}

pub async fn a_key_created_again_is_the_same_key(subject: Subject) -> Kept {
    let store = subject.store.access();
    let key = key(1, Role::Reader);
    put(store, &[key.clone(), key.clone()]).await?;
    assert_eq!(store.list_keys(key.tenant, page(None, 9)).await?, [key]);
    Ok(())
}

pub async fn a_revoked_key_stays_revoked_as_it_was(subject: Subject) -> Kept {
    let store = subject.store.access();
    let key = key(1, Role::Reader);
    put(store, std::slice::from_ref(&key)).await?;
    let revoked = AccessKey {
        revoked_at: Some(at(5)),
        ..key
    };
    for now in [at(5), at(9)] {
        let answer = store.revoke_key(revoked.tenant, revoked.id, now).await?;
        assert_eq!(answer, KeyRevoked::Done(revoked.clone()));
    }
    let stands = store.get_key(revoked.tenant, revoked.id).await?;
    assert_eq!(stands, Some(revoked));
    Ok(())
}

pub async fn of_many_first_keys_one_is_made(subject: Subject) -> Kept {
    let mut tries = tokio::task::JoinSet::new();
    for number in 1..=8 {
        let store = subject.store.clone();
        tries.spawn(async move {
            let first = key(number, Role::Root);
            store.access().create_first_key(&first).await
        });
    }
    let mut made = 0;
    while let Some(done) = tries.join_next().await {
        made += usize::from(done??);
    }
    assert_eq!(made, 1);
    let store = subject.store.access();
    let listed = store.list_keys(TenantId::DEFAULT, page(None, 9)).await?;
    assert_eq!(listed.len(), 1);
    Ok(())
}

pub async fn a_first_key_is_made_when_no_root_key_is_valid(subject: Subject) -> Kept {
    let store = subject.store.access();
    let expired = AccessKey {
        expires_at: Some(at(10)),
        ..key(2, Role::Root)
    };
    put(store, &[key(1, Role::Admin), expired]).await?;
    let first = |number, created_at| AccessKey {
        created_at,
        ..key(number, Role::Root)
    };
    assert!(!store.create_first_key(&first(3, at(9))).await?);
    assert!(store.create_first_key(&first(4, at(10))).await?);
    assert!(!store.create_first_key(&first(5, at(11))).await?);
    Ok(())
}

pub async fn the_last_root_key_is_not_revoked(subject: Subject) -> Kept {
    let store = subject.store.access();
    let (root, other) = (key(1, Role::Root), key(2, Role::Root));
    put(store, &[root.clone(), other.clone()]).await?;
    let revoke = async |key: &AccessKey| store.revoke_key(key.tenant, key.id, at(5)).await;
    assert!(matches!(revoke(&root).await?, KeyRevoked::Done(_)));
    assert_eq!(revoke(&other).await?, KeyRevoked::LastRoot);
    assert_eq!(store.get_key(other.tenant, other.id).await?, Some(other));
    Ok(())
}

pub async fn the_last_use_of_a_key_never_moves_back(subject: Subject) -> Kept {
    let store = subject.store.access();
    let (one, two) = (key(1, Role::Reader), key(2, Role::Reader));
    put(store, &[one.clone(), two.clone()]).await?;
    let before = store.keys_since(0).await?.change;
    let gone = KeyId::from_bytes([99; 16]);
    store
        .use_keys(&[(one.id, at(5)), (gone, at(5)), (two.id, at(6))])
        .await?;
    store.use_keys(&[(one.id, at(4)), (two.id, at(7))]).await?;
    store.use_keys(&[]).await?;
    let used = async |key: &AccessKey| -> Result<Option<Timestamp>, crate::StoreError> {
        let found = store.get_key(key.tenant, key.id).await?;
        Ok(found.and_then(|key| key.last_used_at))
    };
    assert_eq!(used(&one).await?, Some(at(5)));
    assert_eq!(used(&two).await?, Some(at(7)));
    assert_eq!(store.keys_since(0).await?.change, before, "it is no change");
    Ok(())
}

pub async fn a_tenant_has_so_many_keys_and_no_more(subject: Subject) -> Kept {
    let store = subject.store.access();
    let numbered = |number: usize| AccessKey {
        id: KeyId(uuid::Uuid::from_u128(number as u128 + 1)),
        ..key(1, Role::Reader)
    };
    let ended = |number: usize, revoked_at| AccessKey {
        revoked_at: Some(revoked_at),
        ..numbered(number)
    };
    put(store, &[ended(0, at(-1)), ended(1, at(0))]).await?;
    for number in 2..limits::KEYS_MAX {
        put(store, &[numbered(number)]).await?;
    }
    let more = numbered(limits::KEYS_MAX);
    assert_eq!(store.create_key(&more).await?, KeyCreated::Full);
    let others = AccessKey {
        tenant: OTHER,
        ..key(200, Role::Reader)
    };
    put(store, &[others]).await?;
    // One of the two that were revoked is forgotten by then.
    let later = AccessKey {
        created_at: at(0).plus(limits::KEY_KEEP),
        ..more
    };
    put(store, &[later]).await?;
    let stands = store.get_key(TenantId::DEFAULT, numbered(0).id).await?;
    assert_eq!(stands, None);
    let stands = store.get_key(TenantId::DEFAULT, numbered(1).id).await?;
    assert!(stands.is_some());
    Ok(())
}

pub async fn opening_again_keeps_keys(subject: Subject) -> Kept {
    let Some(reopen) = subject.reopen.clone() else {
        return Ok(());
    };
    put(subject.store.access(), &[key(1, Role::Root), whole()]).await?;
    let before = by_id(subject.store.access().keys_since(0).await?);
    let Subject { store, guard, .. } = subject;
    let store = reopen(store).await?;
    let after = by_id(store.access().keys_since(0).await?);
    assert_eq!(after, before);
    drop(guard);
    Ok(())
}

pub async fn a_tenant_is_found_by_its_name_and_its_id(subject: Subject) -> Kept {
    let store = subject.store.access();
    let other = Tenant {
        note: Some("für „alle“".to_owned()),
        ..tenant(OTHER, "other")?
    };
    // Called again, it is the same.
    for _ in 0..2 {
        assert_eq!(store.create_tenant(&other).await?, TenantCreated::Done);
    }
    assert_eq!(store.get_tenant(OTHER).await?, Some(other.clone()));
    assert_eq!(store.find_tenant(&other.name).await?, Some(other.clone()));
    let always = store.get_tenant(TenantId::DEFAULT).await?;
    let name = always.as_ref().map(|tenant| tenant.name.as_str());
    assert_eq!(name, Some(TenantName::DEFAULT));
    let taken = tenant(TenantId(uuid::Uuid::from_u128(8)), "other")?;
    assert_eq!(store.create_tenant(&taken).await?, TenantCreated::Exists);
    assert_eq!(store.get_tenant(taken.id).await?, None);
    let no_note = TenantEdit {
        note: Some(None),
        ..TenantEdit::default()
    };
    let noted = store.edit_tenant(OTHER, &no_note).await?;
    assert_eq!(noted, Some(tenant(OTHER, "other")?));
    assert_eq!(store.get_tenant(OTHER).await?, noted);
    assert_eq!(store.edit_tenant(taken.id, &no_note).await?, None);
    Ok(())
}

pub async fn tenants_are_listed_by_name(subject: Subject) -> Kept {
    let store = subject.store.access();
    for (number, name) in [(3, "zeta"), (1, "beta"), (2, "eta")] {
        let tenant = tenant(TenantId(uuid::Uuid::from_u128(number)), name)?;
        store.create_tenant(&tenant).await?;
    }
    let mut names = Vec::new();
    let mut after = None;
    for expected in [2, 2, 0] {
        let found = store.list_tenants(after.as_ref(), 2).await?;
        assert_eq!(found.len(), expected);
        after = found.last().map(|tenant| tenant.name.clone()).or(after);
        names.extend(found.into_iter().map(|tenant| tenant.name.to_string()));
    }
    assert_eq!(names, ["beta", "default", "eta", "zeta"]);
    Ok(())
}

pub async fn a_key_belongs_to_a_tenant_that_is_there(subject: Subject) -> Kept {
    let store = subject.store.access();
    let key = AccessKey {
        tenant: OTHER,
        ..key(1, Role::Admin)
    };
    assert_eq!(store.create_key(&key).await?, KeyCreated::NoTenant);
    assert!(store.keys_since(0).await?.keys.is_empty());
    put(store, &[key]).await
}

pub async fn a_tenant_goes_when_it_has_no_valid_key(subject: Subject) -> Kept {
    let store = subject.store.access();
    assert_eq!(
        store.drop_tenant(OTHER, at(0)).await?,
        TenantDropped::Missing
    );
    let of_other = |number, role| AccessKey {
        tenant: OTHER,
        ..key(number, role)
    };
    let (kept, ends) = (
        of_other(1, Role::Admin),
        AccessKey {
            expires_at: Some(at(10)),
            ..of_other(2, Role::Reader)
        },
    );
    put(store, &[kept.clone(), ends, key(3, Role::Reader)]).await?;
    store.revoke_key(OTHER, kept.id, at(5)).await?;
    assert_eq!(
        store.drop_tenant(OTHER, at(9)).await?,
        TenantDropped::HasKeys
    );
    assert_eq!(store.drop_tenant(OTHER, at(10)).await?, TenantDropped::Done);
    assert_eq!(store.get_tenant(OTHER).await?, None);
    assert!(store.list_keys(OTHER, page(None, 9)).await?.is_empty());
    let ours = store.list_keys(TenantId::DEFAULT, page(None, 9)).await?;
    assert_eq!(ours, [key(3, Role::Reader)]);
    Ok(())
}
