// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls that a rule of the host forbids, as security modules may. The rule is a filter of system
//! calls (seccomp): a thread may set one for itself without a privilege, and it ends with the
//! thread.

use super::*;
use libc::{c_ulong, sock_filter, sock_fprog};

/// Does `act` in a thread that may neither send nor receive (`EACCES`). `None`, with the reason
/// printed, if this host has no such filters.
fn forbidden<T: Send>(act: impl FnOnce() -> T + Send) -> Option<T> {
    let obey = || {
        let forbidden = forbid_this_thread();
        forbidden
            .inspect_err(|error| eprintln!("skipped: no filter of system calls ({error})"))
            .ok()?;
        Some(act())
    };
    std::thread::scope(|scope| scope.spawn(obey).join().unwrap())
}

fn forbid_this_thread() -> io::Result<()> {
    let (yes, no): (c_ulong, c_ulong) = (1, 0);
    let mut rules = rules();
    let description = sock_fprog { len: rules.len() as u16, filter: rules.as_mut_ptr() };
    // SAFETY: a switch of this thread, without pointers.
    let outcome = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, no, no, no) };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    let kind = c_ulong::from(libc::SECCOMP_MODE_FILTER);
    // SAFETY: `description` names `rules` and their length; both live across the call, and the
    // kernel copies them.
    let outcome = unsafe { libc::prctl(libc::PR_SET_SECCOMP, kind, &raw const description) };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Loads the number of the system call, and returns an error for three of them.
fn rules() -> [sock_filter; 6] {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let step = |code: u32, k: u32, jt: u8| sock_filter { code: code as u16, jt, jf: 0, k };
    [
        step(LOAD, 0, 0),
        step(IF_EQUAL, libc::SYS_recvmsg as u32, 3),
        step(IF_EQUAL, libc::SYS_recvfrom as u32, 2),
        step(IF_EQUAL, libc::SYS_sendmsg as u32, 1),
        step(RETURN, libc::SECCOMP_RET_ALLOW, 0),
        step(RETURN, libc::SECCOMP_RET_ERRNO | libc::EACCES as u32, 0),
    ]
}

#[test]
fn receiving_that_is_forbidden_is_no_report_and_takes_nothing() {
    let (client, server) = connected(local_v4(), &UdpOptions::new());
    let way = Path::to(client.local_address());
    server.send_bytes(&transmit(way, 4), b"ping").unwrap();
    wait_readable([client.as_fd()], Duration::from_secs(10)).unwrap();
    let receive = || client.receive_into(&mut [0; 64], Wait::Never);
    let Some(outcomes) = forbidden(|| [receive(), receive()]) else {
        return;
    };
    let code = libc::EACCES;
    assert_eq!(outcomes, [Err(ReceiveError::Other { code }); 2]);
    assert_eq!(client.statistics().unreachable_hints, 0);
    assert_eq!(receive().unwrap().unwrap().length, 4);
}

#[test]
fn sending_that_is_forbidden_teaches_nothing() {
    let (client, server) = connected(local_v4(), &UdpOptions::new());
    let batch = Transmit { priority: 5, ..transmit(Path::to(server.local_address()), 1_000) };
    let Some(outcome) = forbidden(|| client.send_bytes(&batch, &contents(3_000))) else {
        return;
    };
    assert_eq!(outcome, Err(SendError::Unreachable));
    let statistics = client.statistics();
    assert_eq!(statistics.segmentation_refused, 0);
    assert_eq!(statistics.traffic_class_refused, 0);
    assert_eq!((statistics.send_calls, statistics.unreachable_hints), (2, 0));
    assert_eq!(client.receive_into(&mut [0; 64], Wait::Never), Ok(None));
}
