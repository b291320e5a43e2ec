// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults of hosts, as they strike and end.

use smt_proto::CloseCode;

use super::Run;
use crate::net::fault::FaultKind;
use crate::net::nic_port::NicPort;
use crate::net::packet::HostId;
use crate::swarm::case::{HostFault, HostFaultKind};

impl Run<'_> {
    pub(super) fn strike(&mut self, fault: HostFault) {
        use HostFaultKind as K;
        let id = fault.host;
        let kind = match fault.kind {
            K::Crash { keeps: true } => FaultKind::CrashKeeping,
            K::Crash { keeps: false } => FaultKind::CrashLosing,
            K::ShutDown => FaultKind::ShutDown,
            K::TakeOver => FaultKind::TakeOver,
            K::Pause => FaultKind::Pause,
            K::Step(_) => FaultKind::ClockStep,
            K::Drift(_) => FaultKind::ClockDrift,
            K::Refuse(_) => FaultKind::SendRefused,
            K::Short => FaultKind::SendShort,
            K::CloseAll | K::RotateDeviceKey | K::Restart | K::Resume => return self.change(fault),
        };
        // A shutdown ends by a crash, which is none; and sockets note themselves what they refuse.
        let shuts_down = self.world.peek(id, |host| host.application.is_draining);
        match kind {
            FaultKind::CrashKeeping if shuts_down => {}
            FaultKind::SendRefused | FaultKind::SendShort => {}
            _ => self.strikes.borrow_mut().note(kind),
        }
        if matches!(fault.kind, K::Crash { .. } | K::Pause) {
            self.absences[id.0 as usize] += 1;
        }
        let short = self.random.fork();
        let fresh = match fault.kind {
            K::Crash { keeps } => Some(self.maker.endpoint(id, keeps, &mut self.random)),
            K::TakeOver => Some(self.maker.endpoint(id, false, &mut self.random)),
            _ => None,
        };
        self.world.change(id, |host, now| match fault.kind {
            K::Crash { .. } => {
                host.is_up = false;
                host.application.crash();
                if let Some(fresh) = fresh {
                    host.endpoint = fresh;
                }
            }
            K::TakeOver => {
                host.application.crash();
                fresh.into_iter().for_each(|standby| host.take_over(standby));
            }
            K::ShutDown => {
                host.endpoint.drain(host.clock.at(now));
                host.application.is_draining = true;
            }
            K::Pause => host.is_up = false,
            K::Step(by) => host.clock.step(now, by),
            K::Drift(millionths) => host.clock.drift(now, millionths),
            K::Refuse(time) => host.socket.refuse(now + time),
            K::Short => host.socket.cut_short(short),
            K::CloseAll | K::Restart | K::Resume | K::RotateDeviceKey => {}
        });
        self.take_reports(id);
    }

    /// Lets something happen to a host that stays as it is, or comes back.
    fn change(&mut self, HostFault { host: id, kind, .. }: HostFault) {
        use HostFaultKind as K;
        let is_up = match kind {
            K::Restart | K::Resume => {
                self.repetition.borrow_mut().was_away(id);
                let absences = &mut self.absences[id.0 as usize];
                *absences -= 1;
                *absences == 0
            }
            _ => true,
        };
        // A host without a NIC has no such key.
        let has_nic = self.world.peek(id, |host| host.nic.is_some());
        if kind == K::RotateDeviceKey && has_nic {
            self.strikes.borrow_mut().note(FaultKind::DeviceKey);
        }
        self.world.change(id, |host, _| match kind {
            K::CloseAll => host.endpoint.close_all(CloseCode::ShuttingDown),
            K::RotateDeviceKey => host.nic.iter_mut().for_each(NicPort::rotate_device_key),
            _ => host.is_up = is_up,
        });
    }

    pub(super) fn heal(&mut self) {
        for id in (0..self.case.hosts()).map(HostId) {
            self.repetition.borrow_mut().was_away(id);
            self.world.change(id, |host, _| {
                host.is_up = true;
                host.end_former();
                host.socket.heal();
                host.nic.iter_mut().for_each(NicPort::heal);
            });
        }
    }
}
