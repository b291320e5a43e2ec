// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands and responses as bytes (part 1, section 18; part 3).

use zeroize::Zeroizing;

use super::buffer::{Fields, sized, take, u32};
use super::{StorageKey, TpmError, Transport};

/// A command's number, and its name for errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code(pub(super) u32, pub(super) &'static str);

pub(super) const STARTUP: Code = Code(0x144, "TPM2_Startup");
pub(super) const CREATE_PRIMARY: Code = Code(0x131, "TPM2_CreatePrimary");
pub(super) const CREATE: Code = Code(0x153, "TPM2_Create");
pub(super) const LOAD: Code = Code(0x157, "TPM2_Load");
pub(super) const UNSEAL: Code = Code(0x15e, "TPM2_Unseal");
pub(super) const FLUSH_CONTEXT: Code = Code(0x165, "TPM2_FlushContext");
pub(super) const START_AUTH_SESSION: Code = Code(0x176, "TPM2_StartAuthSession");
pub(super) const NV_DEFINE_SPACE: Code = Code(0x12a, "TPM2_NV_DefineSpace");
pub(super) const NV_INCREMENT: Code = Code(0x134, "TPM2_NV_Increment");
pub(super) const NV_EXTEND: Code = Code(0x136, "TPM2_NV_Extend");
pub(super) const NV_READ_PUBLIC: Code = Code(0x169, "TPM2_NV_ReadPublic");
pub(super) const POLICY_SECRET: Code = Code(0x151, "TPM2_PolicySecret");
pub(super) const ACTIVATE_CREDENTIAL: Code = Code(0x147, "TPM2_ActivateCredential");
pub(super) const NV_READ: Code = Code(0x14e, "TPM2_NV_Read");

/// The hierarchy of the platform's owner.
pub(super) const OWNER: u32 = 0x4000_0001;
/// The hierarchy of the TPM's own keys.
pub(super) const ENDORSEMENT: u32 = 0x4000_000b;
/// No key, no authorization.
pub(super) const NULL: u32 = 0x4000_0007;

const NO_SESSIONS: u16 = 0x8001;
pub(super) const SESSIONS: u16 = 0x8002;
const RC_INITIALIZE: u32 = 0x100;

/// An authorization by an empty password, which hierarchies have until an owner sets one: handle
/// TPM_RS_PW, no nonce, no attributes, no password.
pub(super) const EMPTY_PASSWORD: [u8; 9] = [0x40, 0, 0, 9, 0, 0, 0, 0, 0];

/// A response without its header, which may have a secret and is wiped.
#[derive(Debug)]
pub(super) struct Response(pub(super) Zeroizing<Vec<u8>>);

/// A primary key that a TPM has made.
pub(super) struct Primary {
    pub(super) handle: u32,
    /// The public area (TPMT_PUBLIC).
    pub(super) public: Vec<u8>,
}

impl Response {
    /// The handle and the parameters of a response that has a handle. The session's part, which
    /// was not verified, is cut off where `has_session`.
    pub(super) fn handle_and_parameters(
        &self,
        code: Code,
        has_session: bool,
    ) -> Result<(u32, &[u8]), TpmError> {
        let forged = TpmError::Forged(code.1);
        let mut rest = &self.0[..];
        let Some(handle) = u32(&mut rest) else {
            return Err(forged);
        };
        if !has_session {
            return Ok((handle, rest));
        }
        let length = u32(&mut rest).ok_or(TpmError::Forged(code.1))? as usize;
        rest.get(..length).map(|parameters| (handle, parameters)).ok_or(forged)
    }

    /// The parameters of a response to a command with an authorization by password.
    pub(super) fn parameters(&self, code: Code) -> Result<&[u8], TpmError> {
        let mut rest = &self.0[..];
        let length = u32(&mut rest).ok_or(TpmError::Forged(code.1))? as usize;
        rest.get(..length).ok_or(TpmError::Forged(code.1))
    }
}

impl Transport {
    /// Starts a TPM that nobody has started since it was reset. Firmware does that for one in
    /// hardware.
    ///
    /// # Errors
    /// [`TpmError::Refused`], [`TpmError::Transport`].
    pub fn start_up(&mut self) -> Result<(), TpmError> {
        match self.plain(STARTUP, Fields::default().u16(0)) {
            Err(TpmError::Refused { code: RC_INITIALIZE, .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Has the TPM make the primary key of a public area in a hierarchy.
    pub(super) fn create_primary(
        &mut self,
        hierarchy: u32,
        template: &Fields,
    ) -> Result<Primary, TpmError> {
        // Neither a secret nor data of the caller; the template; no PCR.
        let parameters = Fields::default();
        let parameters = parameters.sized(&[0, 0, 0, 0]).sized(&template.0).sized(&[]).u32(0);
        let response = self.with_empty_password(CREATE_PRIMARY, hierarchy, &parameters)?;
        let (handle, mut rest) = response.handle_and_parameters(CREATE_PRIMARY, true)?;
        let public = sized(&mut rest).ok_or(TpmError::Forged(CREATE_PRIMARY.1))?.to_vec();
        Ok(Primary { handle, public })
    }

    /// A command without authorization.
    pub(super) fn plain(&mut self, code: Code, fields: Fields) -> Result<Response, TpmError> {
        self.send(code, NO_SESSIONS, &fields.0)
    }

    /// A command on a hierarchy or key that needs no secret.
    pub(super) fn with_empty_password(
        &mut self,
        code: Code,
        handle: u32,
        parameters: &Fields,
    ) -> Result<Response, TpmError> {
        self.authorized(code, &[handle], &EMPTY_PASSWORD, parameters)
    }

    /// A command on handles, the authorized ones first, with an authorization of each of these.
    pub(super) fn authorized(
        &mut self,
        code: Code,
        handles: &[u32],
        authorizations: &[u8],
        parameters: &Fields,
    ) -> Result<Response, TpmError> {
        let handles = handles.iter().fold(Fields::default(), |all, it| all.u32(*it));
        let fields =
            handles.u32(authorizations.len() as u32).bytes(authorizations).bytes(&parameters.0);
        self.send(code, SESSIONS, &fields.0)
    }

    pub(super) fn send(&mut self, code: Code, tag: u16, rest: &[u8]) -> Result<Response, TpmError> {
        let command =
            Fields::default().u16(tag).u32(10 + rest.len() as u32).u32(code.0).bytes(rest);
        let response = self.exchange(&command.0)?;
        let mut fields = &response[..];
        let header =
            take::<2>(&mut fields).and_then(|_| Some((u32(&mut fields)?, u32(&mut fields)?)));
        match header {
            Some((size, 0)) if size as usize == response.len() => {
                Ok(Response(Zeroizing::new(fields.to_vec())))
            }
            Some((size, refused)) if size as usize == response.len() => {
                Err(TpmError::Refused { command: code.1, code: refused })
            }
            _ => Err(TpmError::Forged(code.1)),
        }
    }

    /// Lets go of the storage key.
    ///
    /// # Errors
    /// Those of the TPM and of the way to it.
    pub fn let_go(&mut self, key: &StorageKey) -> Result<(), TpmError> {
        self.flush(key.handle)
    }

    /// Lets go of a session or a loaded key, which a TPM has few places for.
    pub(super) fn flush(&mut self, handle: u32) -> Result<(), TpmError> {
        self.plain(FLUSH_CONTEXT, Fields::default().u32(handle)).map(|_| ())
    }
}

/// The private and the public part of a response to TPM2_Create.
pub(super) fn created(parameters: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut rest = parameters;
    Some((sized(&mut rest)?.to_vec(), sized(&mut rest)?.to_vec()))
}
