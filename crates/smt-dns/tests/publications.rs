// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A publisher, its keys and its destinations.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::PathBuf;

use smt_dns::{
    Destination, DynamicUpdate, PublishError, TicketPublisher, TsigKey, ZoneFile, wall_now,
};
use smt_handshake::{TicketKeys, TicketPlan};
use smt_pki::EphemeralCa;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

const NAME: &str = "db7.example";

/// A path of this test's own.
fn path(of: &str) -> PathBuf {
    std::env::temp_dir().join(format!("smt-dns-{of}-{}", std::process::id()))
}

fn publisher(keys: &TicketKeys, destinations: Vec<Destination>) -> TicketPublisher {
    let identity = EphemeralCa::new().unwrap().server(&[NAME]).unwrap();
    let plan = TicketPlan::new([NAME]);
    TicketPublisher::new(&identity, plan, 17_379, keys.clone(), destinations).unwrap()
}

// SMT [6.9-6]
#[tokio::test]
async fn the_key_is_there_before_the_name_server_gets_the_ticket() {
    let file = path("key");
    std::fs::write(&file, "hmac-sha256:k:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=").unwrap();
    let key = TsigKey::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let update = DynamicUpdate::new(address, "example", key).unwrap();
    let keys = TicketKeys::new();
    let mut publisher = publisher(&keys, vec![Destination::Update(update)]);
    let take = async || {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; stream.read_u16().await.unwrap().into()];
        stream.read_exact(&mut request).await.unwrap();
        keys.len()
    };
    let (known, done) = tokio::join!(take(), publisher.publish(wall_now()));
    assert_eq!(known, 1);
    assert!(matches!(done, Err(PublishError::NoAnswer { .. })), "{done:?}");
    // The same ticket again: no further key.
    let (known, done) = tokio::join!(take(), publisher.publish_missing());
    assert_eq!(known, 1);
    done.unwrap_err();
}

#[tokio::test]
async fn a_publisher_that_ends_takes_its_record_away() {
    let file = path("zone");
    let keys = TicketKeys::new();
    let destination = Destination::ZoneFile(ZoneFile::new(&file));
    let publisher = publisher(&keys, vec![destination]);
    let seen = file.clone();
    publisher
        .run(async move {
            let text = std::fs::read_to_string(seen).unwrap();
            assert!(text.contains("_17379._smt.db7.example. 900 IN TYPE64"), "{text}");
        })
        .await;
    assert!(!std::fs::read_to_string(&file).unwrap().contains("TYPE64"));
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn a_failed_destination_does_not_keep_the_others_from_the_ticket() {
    let file = path("other-zone");
    let nowhere = ZoneFile::new(path("no-directory").join("zone"));
    let destinations = [nowhere, ZoneFile::new(&file)].map(Destination::ZoneFile);
    let mut publisher = publisher(&TicketKeys::new(), destinations.into());
    publisher.publish(wall_now()).await.unwrap_err();
    assert!(std::fs::read_to_string(&file).unwrap().contains("TYPE64"));
    std::fs::remove_file(&file).unwrap();
}

// SMT [6.9-1]
#[test]
fn tickets_without_a_dns_name_are_not_published() {
    let identity = EphemeralCa::new().unwrap().server(&["127.0.0.1"]).unwrap();
    let plan = TicketPlan::new(["127.0.0.1"]);
    let made = TicketPublisher::new(&identity, plan, 1, TicketKeys::new(), Vec::new());
    assert!(matches!(made, Err(PublishError::Name(_))), "{made:?}");
}
