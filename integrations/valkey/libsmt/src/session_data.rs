// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The owner's own data of sessions: a pointer that comes back with each event.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;

use crate::endpoint::EndpointForC;

/// The pointers by session. They are not followed here.
#[derive(Default)]
pub(crate) struct SessionData(HashMap<u64, *mut c_void>);

impl SessionData {
    /// The pointer of a session; null if there is none.
    pub(crate) fn of(&self, session: u64) -> *mut c_void {
        self.0.get(&session).copied().unwrap_or(ptr::null_mut())
    }

    /// Sets it; null forgets the session.
    pub(crate) fn set(&mut self, session: u64, data: *mut c_void) {
        if data.is_null() {
            self.0.remove(&session);
        } else {
            self.0.insert(session, data);
        }
    }
}

/// Ties the caller's own data to a session.
///
/// # Safety
/// `endpoint` came from `smt_server_open` and was not closed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_session_set_data(
    endpoint: *mut EndpointForC,
    session: u64,
    data: *mut c_void,
) {
    // SAFETY: the caller gives a live endpoint that no other thread uses.
    unsafe { &mut *endpoint }.data.set(session, data);
}
