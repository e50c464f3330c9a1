//! The known name that someone probably meant.

/// The nearest of some names, if it is near enough to be a slip of the keyboard.
pub(super) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let name = name.to_ascii_lowercase();
    if name.len() > 32 {
        return None;
    }
    let near = (name.len() / 3).clamp(1, 3);
    known
        .iter()
        .map(|candidate| (distance(name.as_bytes(), candidate.as_bytes()), *candidate))
        .filter(|(distance, _)| *distance <= near)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be put in, taken out, changed or swapped with their neighbour.
fn distance(from: &[u8], to: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, a) in from.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, b) in to.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX);
            let changed = at(&last, column) + usize::from(a != b);
            let mut least = changed
                .min(at(&last, column + 1) + 1)
                .min(at(&next, column) + 1);
            let swapped = row > 0
                && column > 0
                && from.get(row - 1) == Some(b)
                && to.get(column - 1) == Some(a);
            if swapped {
                least = least.min(at(&before, column - 1) + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut last, next);
    }
    last.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["timeout", "target", "schedule", "start_within"];
        assert_eq!(nearest("tiemout", &known), Some("timeout"));
        assert_eq!(nearest("Schedule", &known), Some("schedule"));
        assert_eq!(nearest("shedule", &known), Some("schedule"));
        assert_eq!(nearest("start_withn", &known), Some("start_within"));
        assert_eq!(nearest("tenant_id", &known), None);
        assert_eq!(nearest("", &known), None);
    }
}
