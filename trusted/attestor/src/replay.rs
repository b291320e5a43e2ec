// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The inputs of a log, taken again with the attestations that they had before.

use crate::attestor::Attestor;
use crate::error::AttestorError;
use crate::given::Given;

/// A state machine whose statements a device attests.
pub trait Machine {
    /// An input as the log has it.
    type Input;

    /// Its device.
    fn attestor(&mut self) -> &mut Attestor;
    /// Takes an input of the log.
    fn take_again(&mut self, input: Self::Input);
    /// Goes on where it has stopped because the device was ahead of the log.
    fn go_on(&mut self) {}
    /// Drops what it wants sent: it was sent before, or is asked for again.
    fn drop_outputs(&mut self) {}
}

/// Takes the inputs of a log. Those whose attestations come later in the log wait for them.
#[derive(Debug)]
pub struct Replay<I> {
    /// Inputs whose statements a device has given later in the log.
    held: Vec<I>,
    /// Whether all that was given for them has come.
    is_given: bool,
}

impl<I> Default for Replay<I> {
    fn default() -> Self {
        Self { held: Vec::new(), is_given: false }
    }
}

impl<I> Replay<I> {
    /// The log has an input.
    pub fn input(&mut self, machine: &mut impl Machine<Input = I>, input: I) {
        if std::mem::take(&mut self.is_given) || !machine.attestor().outlives() {
            self.take_held(machine);
        }
        self.held.push(input);
    }

    /// The log has what a device has given for the inputs before.
    pub fn given(&mut self, machine: &mut impl Machine<Input = I>, given: Vec<Given>) {
        self.is_given = true;
        machine.attestor().replay(given);
    }

    /// The log has ended. Takes what is left: `log` makes durable what the device gives for it. The
    /// outputs of the last inputs leave again.
    ///
    /// # Errors
    /// Those of the device, which has to have given as much as the log says and no more, and those
    /// of `log`.
    pub fn finish<E: From<AttestorError>>(
        mut self,
        machine: &mut impl Machine<Input = I>,
        mut log: impl FnMut(Vec<Given>) -> Result<(), E>,
    ) -> Result<(), E> {
        machine.drop_outputs();
        for input in std::mem::take(&mut self.held) {
            machine.take_again(input);
            end_if_failed(machine)?;
            while machine.attestor().is_ahead_of_log() {
                log(machine.attestor().take_unlogged())?;
                machine.go_on();
                end_if_failed(machine)?;
            }
        }
        machine.attestor().finish_replay();
        end_if_failed(machine)?;
        let given = machine.attestor().take_unlogged();
        if given.is_empty() { Ok(()) } else { log(given) }
    }

    /// Takes inputs for which the log has all that was given.
    fn take_held(&mut self, machine: &mut impl Machine<Input = I>) {
        machine.drop_outputs();
        for input in std::mem::take(&mut self.held) {
            machine.take_again(input);
        }
        // Something was given that the log should have had.
        if machine.attestor().has_unlogged() {
            machine.attestor().refuse_log();
        }
    }
}

/// The failure of a device, before anything of an input that it was not there for is in the log.
fn end_if_failed(machine: &mut impl Machine) -> Result<(), AttestorError> {
    machine.attestor().failure().map_or(Ok(()), Err)
}
