// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The assignment of connections to callers.

/// Deals connections to callers. Fewer connections than callers: several callers share one. More: a
/// caller has several, and takes them in turn.
pub(crate) fn deal<C: Clone>(connections: Vec<C>, callers: usize) -> Vec<Vec<C>> {
    let mut hands = vec![Vec::new(); callers];
    if connections.len() < callers {
        for (hand, connection) in hands.iter_mut().zip(connections.iter().cycle()) {
            hand.push(connection.clone());
        }
        return hands;
    }
    for (number, connection) in connections.into_iter().enumerate() {
        hands[number % callers].push(connection);
    }
    hands
}

#[cfg(test)]
mod tests {
    use super::deal;

    #[test]
    fn few_are_shared_and_many_are_spread() {
        assert_eq!(deal(vec![1, 2], 3), [[1], [2], [1]]);
        assert_eq!(deal(vec![1, 2, 3], 2), [vec![1, 3], vec![2]]);
    }
}
