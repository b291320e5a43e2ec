// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server by options of C.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::{ptr, slice};

use smt_transport::{ClientAuth, Identity, RevocationLists, TransportConfig, Trust};

use crate::endpoint::{EndpointForC, told};
use crate::error::{ErrorForC, Failure};

/// An `smt_server_options`.
#[repr(C)]
pub(crate) struct OptionsForC {
    address: *const c_char,
    certificate: *const c_char,
    key: *const c_char,
    authority: *const c_char,
    state: *const c_char,
    client_auth: u32,
    message_limit: u32,
    sessions_max: u64,
    memory_max: u64,
    revocation_lists: *const *const c_char,
    revocation_lists_count: usize,
}

/// The texts of options, by what they are.
pub(crate) struct Files<'a> {
    address: &'a str,
    pub(crate) certificate: &'a Path,
    pub(crate) key: &'a Path,
    pub(crate) authority: Option<&'a Path>,
    pub(crate) revocation_lists: Vec<&'a Path>,
    state: Option<&'a Path>,
}

/// A server's identity, and which clients it lets in.
pub(crate) struct Credentials {
    pub(crate) identity: Identity,
    pub(crate) client_auth: ClientAuth,
}

/// Opens a server.
///
/// # Safety
/// The texts of `options` end with a zero, and there are as many revocation lists as they say;
/// `error` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_server_open(
    options: *const OptionsForC,
    error: *mut ErrorForC,
) -> *mut EndpointForC {
    // SAFETY: the caller gives options that may be read.
    let options = unsafe { &*options };
    // SAFETY: their texts end with a zero.
    let files = unsafe { files(options) };
    match files.and_then(|files| open(options, &files)) {
        Ok(endpoint) => Box::into_raw(Box::new(endpoint)),
        Err(failure) => {
            // SAFETY: the caller gives memory for an error.
            unsafe { told(Err(failure), error) };
            ptr::null_mut()
        }
    }
}

fn open(options: &OptionsForC, files: &Files<'_>) -> Result<EndpointForC, Failure> {
    let credentials = credentials(options, files)?;
    let builder = smt_transport::server(credentials.identity.clone());
    let builder = builder.client_auth(credentials.client_auth.clone());
    let mut builder = builder.configure(|config| configure(options, config));
    if let Some(file) = files.state {
        builder = builder.state_file(file);
    }
    Ok(EndpointForC::new(builder.bind_polled(files.address)?, credentials))
}

/// Reads what is in the files now.
pub(crate) fn credentials(
    options: &OptionsForC,
    files: &Files<'_>,
) -> Result<Credentials, Failure> {
    let identity = Identity::from_pem_files(files.certificate, files.key);
    let identity = identity.map_err(|error| Failure::credentials(&error))?;
    Ok(Credentials { identity, client_auth: client_auth(options, files)? })
}

fn client_auth(options: &OptionsForC, files: &Files<'_>) -> Result<ClientAuth, Failure> {
    match options.client_auth {
        0 => Ok(ClientAuth::None),
        1 => Ok(ClientAuth::Optional(trust(files)?)),
        2 => Ok(ClientAuth::Required(trust(files)?)),
        other => Err(Failure::invalid(format!("client_auth is {other}"))),
    }
}

fn trust(files: &Files<'_>) -> Result<Trust, Failure> {
    let file = files.authority;
    let file = file.ok_or_else(|| Failure::invalid("an authority of clients is missing"))?;
    let trust = Trust::roots_from_pem_files(&[file]);
    let trust = trust.map_err(|error| Failure::credentials(&error))?;
    if files.revocation_lists.is_empty() {
        return Ok(trust);
    }
    let lists = RevocationLists::from_files(&files.revocation_lists);
    let lists = lists.map_err(|error| Failure::credentials(&error))?;
    Ok(trust.with_revocation_lists(lists))
}

fn configure(options: &OptionsForC, config: &mut TransportConfig) {
    if options.message_limit > 0 {
        config.message_limit = options.message_limit;
    }
    if let Some(sessions) = chosen(options.sessions_max) {
        config.sessions_max = sessions;
    }
    if let Some(bytes) = chosen(options.memory_max) {
        config.memory_max = bytes;
    }
}

/// The number, unless 0 leaves it to the library.
fn chosen(number: u64) -> Option<usize> {
    (number > 0).then_some(usize::try_from(number).unwrap_or(usize::MAX))
}

/// # Safety
/// The texts end with a zero, and there are as many revocation lists as `options` say.
pub(crate) unsafe fn files(options: &OptionsForC) -> Result<Files<'_>, Failure> {
    // SAFETY: the caller says that the texts end with a zero, and they outlive the options' borrow.
    let text = |text: *const c_char, name: &str| unsafe { text_of(text, name) };
    let needed = |given: *const c_char, name: &str| {
        text(given, name)?.ok_or_else(|| Failure::invalid(format!("{name} is missing")))
    };
    let lists = match options.revocation_lists_count {
        0 => &[],
        // SAFETY: the caller says that there are so many.
        count => unsafe { slice::from_raw_parts(options.revocation_lists, count) },
    };
    let lists = lists.iter().map(|list| needed(*list, "a revocation list").map(Path::new));
    Ok(Files {
        revocation_lists: lists.collect::<Result<_, _>>()?,
        address: needed(options.address, "address")?,
        certificate: Path::new(needed(options.certificate, "certificate")?),
        key: Path::new(needed(options.key, "key")?),
        authority: text(options.authority, "authority")?.map(Path::new),
        state: text(options.state, "state")?.map(Path::new),
    })
}

/// # Safety
/// The text is null or ends with a zero, and lives as long as the outcome.
unsafe fn text_of<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller says that it ends with a zero.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str();
    let text = text.map_err(|_| Failure::invalid(format!("{name} is not UTF-8")))?;
    Ok(Some(text))
}
