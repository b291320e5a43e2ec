// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files of a server, read again while it runs.

use std::ffi::c_int;
use std::path::Path;

use crate::endpoint::{EndpointForC, told};
use crate::error::{ErrorForC, Failure};
use crate::open::{Files, OptionsForC, credentials, files};

/// Reads the files of certificate, key, authority and revocation lists again.
///
/// # Safety
/// `endpoint` came from `smt_server_open` and was not closed; the texts of `options` end with a
/// zero, and there are as many revocation lists as they say; `error` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_server_reload(
    endpoint: *mut EndpointForC,
    options: *const OptionsForC,
    judges_clients: c_int,
    error: *mut ErrorForC,
) -> i32 {
    // SAFETY: the caller gives a live endpoint that no other thread uses.
    let endpoint = unsafe { &mut *endpoint };
    // SAFETY: the caller gives options that may be read.
    let options = unsafe { &*options };
    // SAFETY: their texts end with a zero.
    let files = unsafe { files(options) };
    let outcome = files.and_then(|files| reload(endpoint, options, &files));
    if outcome.is_ok() && judges_clients != 0 {
        endpoint.judge_clients();
    }
    // SAFETY: the caller gives memory for an error.
    unsafe { told(outcome, error) }
}

/// Replaces the endpoint's credentials by what is in the files, or nothing.
fn reload(
    endpoint: &mut EndpointForC,
    options: &OptionsForC,
    files: &Files<'_>,
) -> Result<(), Failure> {
    if let Some(other) = unreadable_again(files) {
        let other = other.display();
        return Err(Failure::credentials(&format!(
            "{other} is no regular file, and would be read a second time: give one"
        )));
    }
    let next = credentials(options, files)?;
    endpoint.endpoint.set_identity(next.identity.clone())?;
    if let Err(error) = endpoint.endpoint.set_client_auth(next.client_auth.clone()) {
        endpoint.endpoint.set_identity(endpoint.credentials.identity.clone())?;
        return Err(error.into());
    }
    endpoint.credentials = next;
    Ok(())
}

/// A file that cannot be read a second time, or whose reading may wait for ever: a pipe.
fn unreadable_again<'a>(files: &Files<'a>) -> Option<&'a Path> {
    let own = [Some(files.certificate), Some(files.key), files.authority];
    let lists = files.revocation_lists.iter().copied();
    // A file that is missing now is told as such when it is read.
    let is_other = |path: &&Path| path.metadata().is_ok_and(|facts| !facts.is_file());
    own.into_iter().flatten().chain(lists).find(is_other)
}
