// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The code for other systems, on this one.

use super::super::portable;
use super::*;

fn sockets() -> (Socket, Socket) {
    let preparation = Preparation {
        family: Family::V4,
        report_local: true,
        segmentation_offload: true,
        receive_offload: true,
    };
    let [source, target] = [(); 2].map(|()| {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        let offloads = portable::prepare(&socket, preparation).unwrap();
        assert!(!offloads.segmentation && !offloads.receive);
        socket.bind(&SockAddr::from(local_v4())).unwrap();
        socket
    });
    (source, target)
}

fn outgoing(to: Option<SocketAddr>, bytes: &[u8]) -> Outgoing<'_> {
    Outgoing { to, ipv4: true, source: None, traffic_class: None, segment_size: None, bytes }
}

#[test]
fn datagram_arrives_connected_or_not() {
    let (source, target) = sockets();
    let name = target.local_addr().unwrap();
    let to = name.as_socket();
    portable::send(&source, &outgoing(to, b"ping")).unwrap();
    source.connect(&name).unwrap();
    portable::send(&source, &outgoing(None, b"pong")).unwrap();
    for expected in [b"ping", b"pong"] {
        let mut buffer = [0; 64];
        portable::wait_readable([target.as_fd()], Duration::from_secs(10)).unwrap();
        let arrival = portable::receive(&target, &mut buffer, Blocking::No).unwrap();
        assert_eq!(&buffer[..arrival.length], expected);
        assert_eq!(Some(arrival.from), source.local_addr().unwrap().as_socket());
        assert!(!arrival.truncated);
    }
    let error = portable::receive(&target, &mut [0; 64], Blocking::No).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn datagram_that_fills_the_buffer_counts_as_cut() {
    let (source, target) = sockets();
    let to = target.local_addr().unwrap().as_socket();
    portable::send(&source, &outgoing(to, &contents(64))).unwrap();
    portable::wait_readable([target.as_fd()], Duration::from_secs(10)).unwrap();
    let arrival = portable::receive(&target, &mut [0; 64], Blocking::No).unwrap();
    assert!(arrival.truncated);
}

#[test]
fn wait_ends_after_its_time() {
    let (_source, target) = sockets();
    portable::wait_readable([target.as_fd()], Duration::from_micros(10)).unwrap();
}

#[test]
fn buffers_are_resized() {
    let (source, _target) = sockets();
    let before = source.recv_buffer_size().unwrap();
    let wanted = BufferBytes { receive: 16_384, send: 16_384 };
    let granted = portable::size_buffers(&source, wanted).unwrap();
    assert!(granted.receive >= 16_384 && granted.receive != before);
    assert!(granted.send >= 16_384);
}

#[test]
fn offloads_that_the_system_lacks_are_reported() {
    let (source, _target) = sockets();
    assert!(portable::report_traffic_class(&source, Family::V4).is_err());
    assert!(portable::path_mtu(&source, true).is_err());
    assert!(portable::attach_selector(&source, 2).is_err());
    assert!(!portable::may_force_buffers(&source));
    assert_eq!(portable::dropped(&source), 0);
}

#[test]
fn reports_about_any_peer_are_not_to_be_had() {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    let error = portable::ask_for_reports(&socket, Family::V4).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    assert!(portable::next_report(&socket).is_err());
}
