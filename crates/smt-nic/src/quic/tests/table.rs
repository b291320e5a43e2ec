// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections and ids in bounded tables.

use super::*;

#[test]
fn ids_come_and_go_while_the_connection_runs() {
    let mut pair = Pair::new(Suite::Aes128Gcm);
    let other = ConnectionId::new(&[1; 8]).unwrap();
    assert_eq!(pair.here.add_id(pair.connection, other), Ok(()));
    let in_use = pair.here.add_id(pair.connection, other);
    assert_eq!(in_use, Err(QuicTableError::IdInUse));
    let packet = pair.sealed(1, 0);
    let first = ConnectionId::new(&ID).unwrap();
    assert!(pair.here.remove_id(pair.connection, &first));
    assert!(!pair.here.remove_id(pair.connection, &first));
    let unknown = Received::Untouched(Untouched::UnknownConnection);
    assert_eq!(pair.receive(&packet), unknown);
    let short = ConnectionId::new(&[1; 4]).unwrap();
    let wrong = pair.here.add_id(pair.connection, short);
    assert_eq!(wrong, Err(QuicTableError::BadIdLength));
}

#[test]
fn a_handle_of_a_removed_connection_means_no_later_one() {
    let mut engine = engine(1, 4);
    let keys = keys(Suite::Aes128Gcm);
    let first = engine.add(&keys).unwrap();
    assert_eq!(engine.add(&keys), Err(QuicTableError::NoRoom));
    engine.remove(first);
    let second = engine.add(&keys).unwrap();
    assert_ne!(first, second);
    let id = ConnectionId::new(&ID).unwrap();
    assert_eq!(engine.add_id(first, id), Err(QuicTableError::UnknownConnection));
    assert_eq!(engine.add_id(second, id), Ok(()));
    engine.remove(first);
    assert_eq!(engine.sizes(), (1, 1));
}
