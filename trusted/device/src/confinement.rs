// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rights that the device process gives up.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;

use rustix::fs::{Gid, Uid};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// A user of the operating system, who is not the one of the host's applications.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Account {
    /// The user's number.
    pub user: u32,
    /// The number of the user's group.
    pub group: u32,
}

impl Account {
    /// Finds a user by name or number in `/etc/passwd`.
    ///
    /// # Errors
    /// The file cannot be read, or has no such user.
    pub fn find(name: &str) -> io::Result<Self> {
        let table = std::fs::read_to_string("/etc/passwd")?;
        Self::find_in(&table, name).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn find_in(table: &str, name: &str) -> Option<Self> {
        table.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (found, _, user, group) =
                (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
            let account = Self { user: user.parse().ok()?, group: group.parse().ok()? };
            (found == name || user == name).then_some(account)
        })
    }

    /// Becomes this user for ever. Capabilities go with root.
    ///
    /// # Errors
    /// The process is not root's.
    pub fn assume(self) -> io::Result<()> {
        let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
        set_thread_groups(&[])?;
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)?;
        Ok(())
    }
}

/// Finds a group by name or number in `/etc/group`.
///
/// # Errors
/// The file cannot be read, or has no such group.
pub fn group(name: &str) -> io::Result<u32> {
    let table = std::fs::read_to_string("/etc/group")?;
    group_in(&table, name).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn group_in(table: &str, name: &str) -> Option<u32> {
    table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (found, _, number) = (fields.next()?, fields.next()?, fields.next()?);
        (found == name || number == name).then(|| number.parse().ok())?
    })
}

/// Leaves no core dump, and lets no other process of this user look into this one. Comes after the
/// change of the user, which would undo it, and before keys are read.
///
/// # Errors
/// The operating system failed.
pub fn hide() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(set_no_new_privs(true)?)
}

/// The open files that a process goes on to use.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// Files that are written and synced: those of the logs' ends.
    pub files: Vec<RawFd>,
    /// The way to the TPM.
    pub tpm: Option<RawFd>,
}

/// Leaves the process only the system calls that [`crate::Server`] needs: any other one kills it.
/// No file can be opened and no process started. With files, these alone may be written at a place
/// and synced; with a TPM, that alone may be read.
///
/// # Errors
/// The kernel has no seccomp.
pub fn filter(rights: &Rights) -> io::Result<()> {
    let program = program(rights).map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}

fn program(rights: &Rights) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    // Memory may be mapped, but never be run.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let executable = SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64);
        let never = SeccompCondition::new(2, SeccompCmpArgLen::Dword, executable, 0)?;
        rules.insert(call, vec![SeccompRule::new(vec![never])?]);
    }
    // Sealing, and the check of a debug build that a file descriptor is open when it is closed.
    let only = |command: i32| {
        let is_command = SeccompCmpOp::Eq;
        let condition =
            SeccompCondition::new(1, SeccompCmpArgLen::Dword, is_command, command as u64)?;
        SeccompRule::new(vec![condition])
    };
    rules.insert(libc::SYS_fcntl, vec![only(libc::F_ADD_SEALS)?, only(libc::F_GETFD)?]);
    let of = |file: &RawFd| {
        let is_file = SeccompCmpOp::Eq;
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, is_file, *file as u64)?;
        SeccompRule::new(vec![condition])
    };
    if !rights.files.is_empty() {
        let files = rights.files.iter().map(of).collect::<Result<Vec<_>, _>>()?;
        rules.insert(libc::SYS_pwrite64, files.clone());
        rules.insert(libc::SYS_fdatasync, files);
        // Nonces of files and of the TPM's sessions.
        rules.insert(libc::SYS_getrandom, Vec::new());
    }
    if let Some(tpm) = &rights.tpm {
        rules.insert(libc::SYS_read, vec![of(tpm)?]);
    }
    let architecture: TargetArch = std::env::consts::ARCH.try_into()?;
    let (kill, allow) = (SeccompAction::KillProcess, SeccompAction::Allow);
    SeccompFilter::new(rules, kill, allow, architecture)?.try_into()
}

/// System calls of [`crate::Server::run`], of memory management, and of the end of a process.
const ALLOWED: &[i64] = &[
    libc::SYS_accept4,
    libc::SYS_brk,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_madvise,
    libc::SYS_memfd_create,
    libc::SYS_mremap,
    libc::SYS_munmap,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_recvfrom,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_sigaltstack,
    libc::SYS_write,
    libc::SYS_writev,
];

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, ExitStatus};
    use std::sync::Arc;

    use super::*;

    /// How a child ends that takes the filter, and then does `then` and starts a program.
    fn end_of_child(rights: Rights, then: impl Fn() + Send + Sync + 'static) -> ExitStatus {
        let mut command = Command::new("true");
        let confined = move || filter(&rights).map(|()| then());
        // SAFETY: between fork and exec the child allocates, which libc allows after a fork, and
        // makes system calls. It takes no other lock.
        unsafe { command.pre_exec(confined) };
        command.status().unwrap()
    }

    fn end() {
        // SAFETY: the child may end at any time.
        unsafe { libc::_exit(7) };
    }

    #[test]
    fn a_process_with_the_filter_is_killed_when_it_starts_a_program() {
        assert_eq!(end_of_child(Rights::default(), || ()).signal(), Some(libc::SIGSYS));
    }

    #[test]
    fn a_process_with_the_filter_is_killed_when_it_opens_a_file() {
        assert_eq!(end_of_child(Rights::default(), end).code(), Some(7));
        let open = || {
            drop(File::open("/dev/null"));
            end();
        };
        assert_eq!(end_of_child(Rights::default(), open).signal(), Some(libc::SIGSYS));
    }

    #[test]
    fn a_process_with_the_filter_writes_and_reads_its_own_files_alone() {
        let file = || {
            let mut options = std::fs::OpenOptions::new();
            Arc::new(options.read(true).write(true).open("/dev/null").unwrap())
        };
        let (own, tpm, other) = (file(), file(), file());
        let (files, tpm_file) = (vec![own.as_raw_fd()], Some(tpm.as_raw_fd()));
        let rights = Rights { files, tpm: tpm_file };
        let reads = |file: &File| {
            let _ = (&*file).read(&mut [0; 8]);
        };
        let writes = |file: &File| {
            let _ = file.write_all_at(b"bytes", 0).and_then(|()| file.sync_data());
        };
        let status = |then: Box<dyn Fn() + Send + Sync>| {
            end_of_child(rights.clone(), move || {
                then();
                end();
            })
        };
        let (file, at) = (own.clone(), tpm.clone());
        let allowed = move || {
            writes(&file);
            reads(&at);
        };
        assert_eq!(status(Box::new(allowed)).code(), Some(7));
        let (not_own, not_tpm) = (other.clone(), own.clone());
        assert_eq!(status(Box::new(move || writes(&not_own))).signal(), Some(libc::SIGSYS));
        assert_eq!(status(Box::new(move || writes(&tpm))).signal(), Some(libc::SIGSYS));
        assert_eq!(status(Box::new(move || reads(&not_tpm))).signal(), Some(libc::SIGSYS));
        assert_eq!(status(Box::new(move || reads(&other))).signal(), Some(libc::SIGSYS));
    }

    #[test]
    fn a_user_is_found_by_name_and_by_number() {
        let table = "root:x:0:0:root:/root:/bin/sh\nbad\nsmt:x:990:991::/:/sbin/nologin\n";
        let smt = Some(Account { user: 990, group: 991 });
        assert_eq!(Account::find_in(table, "smt"), smt);
        assert_eq!(Account::find_in(table, "990"), smt);
        assert_eq!(Account::find_in(table, "sm"), None);
    }
}
