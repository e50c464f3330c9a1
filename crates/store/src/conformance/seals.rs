//! Seals of the audit log, and how it is forgotten: by whole segments, or by age where nothing is sealed.

use model::Timestamp;

use super::audit::entries;
use super::{Kept, Subject, at, job};
use crate::{DroppedSeals, Gap, Seal};

fn seal(number: u64, from: u64, to: u64, sealed_at: Timestamp) -> Seal {
    Seal {
        number,
        from,
        to,
        sealed_at,
        gaps: vec![],
        late: vec![],
        count: 1,
        key: "first".to_owned(),
        previous: [number as u8; 32],
        mac: [number as u8 + 1; 32],
    }
}

pub async fn a_seal_reads_back_whole_and_follows_the_last(subject: Subject) -> Kept {
    let access = subject.store.access();
    assert_eq!(access.last_seal().await?, None);
    let second = Seal {
        gaps: vec![Gap { first: 5, last: 5 }, Gap { first: 7, last: 9 }],
        late: vec![2, 3],
        ..seal(2, 4, 10, at(2))
    };
    assert!(!access.put_seal(&second).await?, "there is no first");
    assert!(access.put_seal(&seal(1, 1, 3, at(1))).await?);
    assert!(access.put_seal(&second).await?);
    assert!(
        !access.put_seal(&seal(2, 4, 11, at(2))).await?,
        "another was faster"
    );
    assert_eq!(access.last_seal().await?.as_ref(), Some(&second));
    assert_eq!(access.list_seals(1, 9).await?, [second]);
    assert_eq!(access.list_seals(0, 1).await?, [seal(1, 1, 3, at(1))]);
    Ok(())
}

pub async fn a_sealed_segment_goes_whole_and_the_last_stays(subject: Subject) -> Kept {
    for number in 1..=4 {
        subject.put(job(number)?).await?;
    }
    let seqs: Vec<u64> = entries(&subject).await?.iter().map(|it| it.seq).collect();
    let [a, b, c, d] = seqs.as_slice() else {
        return Err("there are four".into());
    };
    let access = subject.store.access();
    // The second was not seen yet when the first segment was sealed, and belongs to the next.
    let first = Seal {
        gaps: vec![Gap {
            first: *b,
            last: *b,
        }],
        ..seal(1, *a, *c, at(1))
    };
    let second = Seal {
        late: vec![*b],
        ..seal(2, c + 1, *d, at(2))
    };
    assert!(access.put_seal(&first).await? && access.put_seal(&second).await?);
    let all = access.list_seals(0, 9).await?;
    assert_eq!(Seal::to_drop(all.clone(), at(0)), []);
    assert_eq!(Seal::to_drop(all.clone(), at(9)).len(), 1, "the last stays");
    let going = Seal::to_drop(all, at(1));
    let said = DroppedSeals::of(&going, "first").ok_or("nothing goes")?;
    assert!(access.drop_sealed(&going, &said).await?);
    assert!(!access.drop_sealed(&going, &said).await?, "they are gone");
    let left = entries(&subject).await?;
    let seqs: Vec<u64> = left.iter().map(|it| it.seq).collect();
    assert_eq!(seqs.get(..2), Some([*b, *d].as_slice()));
    let dropped = left.last().ok_or("no entry")?;
    assert_eq!((left.len(), dropped.action.as_str()), (3, "audit.drop"));
    let read = DroppedSeals::parse(dropped.before.as_deref().unwrap_or_default());
    assert_eq!(read, Some(said));
    Ok(())
}

pub async fn what_is_in_no_segment_goes_by_its_age(subject: Subject) -> Kept {
    for number in 1..=3 {
        subject.put(job(number)?).await?;
    }
    let made = entries(&subject).await?;
    let first = made.first().ok_or("there are three")?;
    let access = subject.store.access();
    access.put_seal(&seal(1, 1, first.seq, at(1))).await?;
    let before = first.at.minus(std::time::Duration::from_secs(1));
    assert_eq!(access.drop_unsealed(before).await?, 0);
    let last = made.last().ok_or("there are three")?;
    assert_eq!(access.drop_unsealed(last.at).await?, 2);
    let left = entries(&subject).await?;
    let left: Vec<&str> = left.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(left, ["job.create", "audit.drop"], "the first is sealed");
    Ok(())
}
