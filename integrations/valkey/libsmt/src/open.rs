// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server by options of C.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr;

use smt_transport::polled::Endpoint;
use smt_transport::{ClientAuth, Identity, TransportConfig, Trust};

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
}

/// The texts of options, by what they are.
struct Files<'a> {
    address: &'a str,
    certificate: &'a Path,
    key: &'a Path,
    authority: Option<&'a Path>,
    state: Option<&'a Path>,
}

/// Opens a server.
///
/// # Safety
/// The texts of `options` end with a zero; `error` may be written.
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
        Ok(endpoint) => Box::into_raw(Box::new(EndpointForC::new(endpoint))),
        Err(failure) => {
            // SAFETY: the caller gives memory for an error.
            unsafe { told(Err(failure), error) };
            ptr::null_mut()
        }
    }
}

fn open(options: &OptionsForC, files: &Files<'_>) -> Result<Endpoint, Failure> {
    let identity = Identity::from_pem_files(files.certificate, files.key);
    let identity = identity.map_err(|error| Failure::credentials(&error))?;
    let builder = smt_transport::server(identity);
    let builder = builder.client_auth(client_auth(options, files)?);
    let mut builder = builder.configure(|config| configure(options, config));
    if let Some(file) = files.state {
        builder = builder.state_file(file);
    }
    Ok(builder.bind_polled(files.address)?)
}

fn client_auth(options: &OptionsForC, files: &Files<'_>) -> Result<ClientAuth, Failure> {
    let trust = || {
        let file = files.authority;
        let file = file.ok_or_else(|| Failure::invalid("an authority of clients is missing"))?;
        Trust::roots_from_pem_files(&[file]).map_err(|error| Failure::credentials(&error))
    };
    match options.client_auth {
        0 => Ok(ClientAuth::None),
        1 => Ok(ClientAuth::Optional(trust()?)),
        2 => Ok(ClientAuth::Required(trust()?)),
        other => Err(Failure::invalid(format!("client_auth is {other}"))),
    }
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
/// The texts end with a zero.
unsafe fn files(options: &OptionsForC) -> Result<Files<'_>, Failure> {
    // SAFETY: the caller says that the texts end with a zero, and they outlive the options' borrow.
    let text = |text: *const c_char, name: &str| unsafe { text_of(text, name) };
    let needed = |given: *const c_char, name: &str| {
        text(given, name)?.ok_or_else(|| Failure::invalid(format!("{name} is missing")))
    };
    Ok(Files {
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
