// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Engines plug in from outside the crate, and two of them share a device.

use smt_nic::completion::Status;
use smt_nic::descriptor::ContextId;
use smt_nic::engine::{BadContextBlock, ContextBlock, Engine, EngineError, Protected};
use smt_nic::tls::TlsEngine;
use smt_nic::{Nic, NicConfig};

use super::support::{Host, tls_block, unsealed};

/// An engine that adds the context's number to each byte of the payload.
#[derive(Clone, Debug)]
struct Adder;

const ADDER: u8 = 200;

impl Engine for Adder {
    type Context = u8;

    fn create(&self, block: &ContextBlock) -> Result<u8, BadContextBlock> {
        match block.bytes() {
            [ADDER, number, ..] => Ok(*number),
            _ => Err(BadContextBlock::OtherEngine),
        }
    }

    fn resync(&self, context: &mut u8, number: u64) {
        *context = number as u8;
    }

    fn protect(&self, context: &mut u8, payload: &mut [u8]) -> Result<Protected, EngineError> {
        payload.iter_mut().for_each(|byte| *byte += *context);
        Ok(Protected { records: 1, bytes: payload.len() as u64 })
    }
}

#[test]
fn two_engines_share_a_device_and_each_context_has_its_own() {
    let (mut host, mut nic) = (Host::default(), Nic::new(NicConfig::default(), (TlsEngine, Adder)));
    let queue = host.add_queue(&mut nic, 16);
    let mut adder = [0; 64];
    adder[..2].copy_from_slice(&[ADDER, 3]);
    let tls = tls_block(0x1301, &[1; 16], [2; 12], 0);
    for (id, block) in [(1, &tls), (2, &adder), (3, &[99; 64])] {
        let create = host.create(ContextId(id), block);
        host.post(&mut nic, queue, create);
    }
    let created = host.run(&mut nic, queue).completions;
    let statuses: Vec<Status> = created.iter().map(|of| of.status).collect();
    assert_eq!(statuses, [Status::Done, Status::Done, Status::BadContextBlock]);
    let work = host.segment(Some(ContextId(2)), &[10; 100], 0);
    host.post(&mut nic, queue, work);
    assert_eq!(host.run(&mut nic, queue).stream(), [13; 100]);
    let record = unsealed(&[10; 100]);
    let work = host.segment(Some(ContextId(1)), &record, 0);
    host.post(&mut nic, queue, work);
    let sealed = host.run(&mut nic, queue).stream();
    assert!(sealed.len() == record.len() && sealed[..5] == record[..5] && sealed != record);
}
