//! Users, their sessions, and links that log in.

use std::time::Duration;

use model::{
    ConsoleLink, Holder, KeyId, Membership, Role, Session, Tenant, TenantId, TenantName, User,
    UserEdit, UserId, UserName, limits,
};

use super::{Kept, Subject, at};
use crate::{AuditRange, BoxError, TenantCreated, TenantDropped, UserCreated, UserEdited};

const OTHER: TenantId = TenantId(uuid::Uuid::from_u128(7));

fn user(number: u8, name: &str, members: &[(TenantId, Role)]) -> Result<User, BoxError> {
    let member = |&(tenant, role): &(TenantId, Role)| Membership { tenant, role };
    Ok(User {
        id: UserId::from_bytes([number; 16]),
        name: UserName::new(name)?,
        password: format!("$argon2id${number}"),
        members: members.iter().map(member).collect(),
        created_at: at(1),
        updated_at: at(2),
    })
}

async fn other(subject: &Subject) -> Kept {
    let tenant = Tenant::new(OTHER, TenantName::new("other")?, at(0));
    let created = subject.store.access().create_tenant(&tenant).await?;
    assert_eq!(created, TenantCreated::Done);
    Ok(())
}

fn session(number: u8, holder: Holder, secs: i64) -> Session {
    Session {
        digest: [number; 32],
        holder,
        tenant: TenantId::DEFAULT,
        created_at: at(secs),
        used_at: at(secs),
    }
}

pub async fn a_user_reads_back_whole_with_all_its_tenants(subject: Subject) -> Kept {
    other(&subject).await?;
    let store = subject.store.access();
    let both = user(
        1,
        "ada",
        &[(TenantId::DEFAULT, Role::Root), (OTHER, Role::Reader)],
    )?;
    let none = user(2, "bob", &[])?;
    for user in [&both, &none, &both] {
        assert_eq!(store.create_user(user).await?, UserCreated::Done);
    }
    for user in [&both, &none] {
        assert_eq!(store.get_user(user.id).await?.as_ref(), Some(user));
        assert_eq!(store.find_user(&user.name).await?.as_ref(), Some(user));
    }
    assert_eq!(
        store.list_users(None, 9).await?,
        [both.clone(), none.clone()]
    );
    assert_eq!(
        store.list_users(None, 1).await?,
        std::slice::from_ref(&both)
    );
    assert_eq!(store.list_users(Some(&both.name), 9).await?, [none]);
    let taken = user(3, "ada", &[])?;
    assert_eq!(store.create_user(&taken).await?, UserCreated::Exists);
    assert_eq!(store.get_user(taken.id).await?, None);
    Ok(())
}

pub async fn a_user_belongs_to_tenants_that_are_there(subject: Subject) -> Kept {
    let store = subject.store.access();
    let lost = user(1, "ada", &[(OTHER, Role::Admin)])?;
    assert_eq!(store.create_user(&lost).await?, UserCreated::NoTenant);
    other(&subject).await?;
    assert_eq!(store.create_user(&lost).await?, UserCreated::Done);
    let elsewhere = UserEdit {
        members: Some(vec![Membership {
            tenant: TenantId(uuid::Uuid::from_u128(8)),
            role: Role::Reader,
        }]),
        ..UserEdit::default()
    };
    let edited = store.edit_user(lost.id, &elsewhere, at(5)).await?;
    assert_eq!(edited, UserEdited::NoTenant);
    assert_eq!(store.get_user(lost.id).await?, Some(lost.clone()));
    assert_eq!(store.drop_tenant(OTHER, at(9)).await?, TenantDropped::Done);
    let left = store.get_user(lost.id).await?;
    assert_eq!(left.map(|user| user.members), Some(Vec::new()));
    Ok(())
}

pub async fn another_password_ends_the_sessions_of_a_user(subject: Subject) -> Kept {
    let store = subject.store.access();
    let (ada, bob) = (user(1, "ada", &[])?, user(2, "bob", &[])?);
    for user in [&ada, &bob] {
        store.create_user(user).await?;
    }
    let (one, two) = (
        session(1, Holder::User(ada.id), 1),
        session(2, Holder::User(bob.id), 1),
    );
    for session in [&one, &two] {
        store.begin_session(session, None).await?;
    }
    let member = Membership {
        tenant: TenantId::DEFAULT,
        role: Role::Operator,
    };
    let members = UserEdit {
        members: Some(vec![member]),
        ..UserEdit::default()
    };
    let edited = store.edit_user(ada.id, &members, at(5)).await?;
    let expected = User {
        members: vec![member],
        updated_at: at(5),
        ..ada.clone()
    };
    assert_eq!(edited, UserEdited::Done(expected));
    assert_eq!(store.get_session(one.digest).await?, Some(one.clone()));
    let password = UserEdit {
        password: Some("$argon2id$new".to_owned()),
        ..UserEdit::default()
    };
    store.edit_user(ada.id, &password, at(6)).await?;
    assert_eq!(store.get_session(one.digest).await?, None);
    assert_eq!(store.get_session(two.digest).await?, Some(two.clone()));
    assert!(store.drop_user(bob.id).await?);
    assert!(!store.drop_user(bob.id).await?);
    assert_eq!(store.get_session(two.digest).await?, None);
    assert_eq!(store.get_user(bob.id).await?, None);
    let gone = store.edit_user(bob.id, &password, at(7)).await?;
    assert_eq!(gone, UserEdited::Missing);
    Ok(())
}

pub async fn a_session_is_used_moved_and_ended(subject: Subject) -> Kept {
    other(&subject).await?;
    let store = subject.store.access();
    let holder = Holder::Key(KeyId::from_bytes([3; 16]));
    let mut session = session(1, holder, 10);
    store.begin_session(&session, None).await?;
    store.use_session(session.digest, at(70), OTHER).await?;
    store.use_session(session.digest, at(60), OTHER).await?;
    (session.used_at, session.tenant) = (at(70), OTHER);
    assert_eq!(
        store.get_session(session.digest).await?,
        Some(session.clone())
    );
    let next = Session {
        digest: [2; 32],
        ..session.clone()
    };
    store.begin_session(&next, Some(session.digest)).await?;
    assert_eq!(store.get_session(session.digest).await?, None, "rotated");
    store.end_session(next.digest).await?;
    assert_eq!(store.get_session(next.digest).await?, None);
    store.use_session(next.digest, at(80), OTHER).await?;
    assert_eq!(store.get_session(next.digest).await?, None);
    Ok(())
}

pub async fn sessions_that_ended_are_forgotten_and_nobody_has_too_many(subject: Subject) -> Kept {
    let store = subject.store.access();
    let (ada, key) = (
        Holder::User(UserId::from_bytes([1; 16])),
        Holder::Key(KeyId::from_bytes([1; 16])),
    );
    store.begin_session(&session(200, key, 0), None).await?;
    for number in 0..=limits::SESSIONS_MAX as u8 {
        let session = session(number, ada, i64::from(number));
        store.begin_session(&session, None).await?;
    }
    assert_eq!(store.get_session([0; 32]).await?, None, "the oldest");
    assert!(store.get_session([1; 32]).await?.is_some());
    assert!(store.get_session([200; 32]).await?.is_some(), "of another");
    let late = Session {
        created_at: at(0).plus(limits::SESSION_IDLE + Duration::from_secs(5)),
        ..session(100, ada, 0)
    };
    let late = Session {
        used_at: late.created_at,
        ..late
    };
    store.begin_session(&late, None).await?;
    assert_eq!(store.get_session([200; 32]).await?, None, "idle");
    assert_eq!(store.get_session([5; 32]).await?, None, "idle");
    assert!(store.get_session([6; 32]).await?.is_some());
    Ok(())
}

fn link(number: u8) -> ConsoleLink {
    ConsoleLink {
        digest: [number; 32],
        key: KeyId::from_bytes([4; 16]),
        tenant: TenantId::DEFAULT,
        expires_at: at(60),
    }
}

pub async fn a_link_opens_once_and_in_time(subject: Subject) -> Kept {
    let store = subject.store.access();
    store.put_link(&link(1), at(0)).await?;
    store.put_link(&link(2), at(1)).await?;
    assert_eq!(store.open_link([1; 32], at(59)).await?, Some(link(1)));
    assert_eq!(store.open_link([1; 32], at(59)).await?, None, "used");
    assert_eq!(store.open_link([2; 32], at(60)).await?, None, "expired");
    assert_eq!(store.open_link([3; 32], at(0)).await?, None);
    Ok(())
}

pub async fn changes_of_users_are_entered_with_each_of_their_tenants(subject: Subject) -> Kept {
    other(&subject).await?;
    let store = subject.store.access();
    let ada = user(
        1,
        "ada",
        &[(TenantId::DEFAULT, Role::Admin), (OTHER, Role::Reader)],
    )?;
    store.create_user(&ada).await?;
    store
        .begin_session(&session(1, Holder::User(ada.id), 5), None)
        .await?;
    let edit = UserEdit {
        password: Some("$argon2id$new".to_owned()),
        ..UserEdit::default()
    };
    store.edit_user(ada.id, &edit, at(6)).await?;
    let again = session(2, Holder::User(ada.id), 7);
    store.begin_session(&again, None).await?;
    for _ in 0..2 {
        store.end_session(again.digest).await?;
    }
    store.put_link(&link(3), at(8)).await?;
    store.drop_user(ada.id).await?;
    let entries = store.list_audit(&AuditRange::ALL).await?;
    let of = |tenant| {
        let entries = entries.iter().filter(|it| it.action.starts_with("user."));
        let of_tenant = entries.filter(|it| it.tenant == tenant);
        of_tenant.map(|it| &*it.action).collect::<Vec<_>>()
    };
    let all = [
        "user.create",
        "user.login",
        "user.edit",
        "user.login",
        "user.logout",
        "user.link",
        "user.delete",
    ];
    assert_eq!(of(TenantId::DEFAULT), all);
    assert_eq!(of(OTHER), ["user.create", "user.edit", "user.delete"]);
    for entry in &entries {
        let texts = [&entry.before, &entry.after];
        let texts = texts.map(|text| text.clone().unwrap_or_default());
        assert!(
            texts.iter().all(|text| !text.contains("argon2")),
            "{entry:?}"
        );
        if entry.tenant == OTHER {
            assert!(
                texts.iter().all(|text| !text.contains("admin")),
                "{entry:?}"
            );
        }
    }
    Ok(())
}
