// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::record::TicketRecord;
use crate::server::Server;
use tokio::net::TcpListener;

const KEY: &str = "hmac-sha256:smt-key:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

fn key() -> TsigKey {
    let directory = std::env::temp_dir();
    let path = directory.join(format!(
        "smt-dns-key-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::write(&path, KEY).unwrap();
    let key = TsigKey::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    key
}

fn publication(name: &str) -> Publication {
    let (ticket, chain) = crate::record::tests::ticket(name);
    Publication {
        servers: vec![Server::new(name, 17_379).unwrap()],
        record: TicketRecord::new(ticket, &chain).unwrap(),
        ttl: 900,
    }
}

/// The update that a name server got, which gives this answer, and the outcome.
async fn sent(answer: impl FnOnce(&Message) -> Vec<u8>) -> (Message, Result<(), PublishError>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let update = DynamicUpdate::new(server, "example", key()).unwrap();
    let publication = publication("db7.example");
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; stream.read_u16().await.unwrap().into()];
        stream.read_exact(&mut request).await.unwrap();
        let request = Message::from_vec(&request).unwrap();
        let answer = answer(&request);
        let length = u16::try_from(answer.len()).unwrap();
        stream.write_u16(length).await.unwrap();
        stream.write_all(&answer).await.unwrap();
        request
    };
    tokio::join!(serve, update.publish(&publication))
}

#[tokio::test]
async fn one_message_replaces_the_records_and_is_signed() {
    let (request, _) = sent(|_| Vec::new()).await;
    assert_eq!(request.op_code, OpCode::Update);
    assert_eq!(request.queries[0].name().to_string(), "example.");
    let [all, record] = request.authorities.as_slice() else {
        panic!("{:?}", request.authorities);
    };
    assert_eq!((all.dns_class, all.ttl), (DNSClass::ANY, 0));
    assert_eq!((record.dns_class, record.ttl), (DNSClass::IN, 900));
    assert_eq!(record.name.to_string(), "_17379._smt.db7.example.");
    assert!(request.signature().is_some());
}

#[tokio::test]
async fn answers_that_are_not_signed_or_say_no_are_failures() {
    let unsigned = |request: &Message| Message::response(request.id, OpCode::Update).to_vec();
    let (_, done) = sent(|request| unsigned(request).unwrap()).await;
    let error = done.unwrap_err().to_string();
    assert!(error.contains("not signed"), "{error}");
    let (_, done) = sent(|request| {
        Message::error_msg(request.id, OpCode::Update, ResponseCode::Refused).to_vec().unwrap()
    })
    .await;
    let error = done.unwrap_err().to_string();
    assert!(error.starts_with("peer: ") && error.contains("efused"), "{error}");
    let (_, done) = sent(|_| b"nothing".to_vec()).await;
    assert!(done.unwrap_err().to_string().contains("malformed"));
}

#[tokio::test]
async fn a_name_server_that_is_not_there_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    drop(listener);
    let update = DynamicUpdate::new(server, "example", key()).unwrap();
    let done = update.publish(&publication("db7.example")).await;
    let error = done.unwrap_err().to_string();
    assert!(error.starts_with("environment: "), "{error}");
}

#[tokio::test]
async fn names_outside_of_the_zone_are_not_sent() {
    let update = DynamicUpdate::new("127.0.0.1:1".parse().unwrap(), "example", key()).unwrap();
    let done = update.publish(&publication("db7.elsewhere")).await;
    assert!(matches!(done, Err(PublishError::Name(_))), "{done:?}");
}
