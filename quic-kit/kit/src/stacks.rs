// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stacks, their processes, and what each can be told.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::measure::Setting;

/// quinn on the engine.
pub(crate) const OFFLOAD: &str = "offload";
/// The same with all connections in software.
pub(crate) const IN_SOFTWARE: &str = "in-software";

/// A stack.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) name: &'static str,
    /// The program, with what comes before its arguments.
    program: Vec<PathBuf>,
    /// It is in Python: its transfers are smaller, and it samples itself.
    pub(crate) is_python: bool,
    /// The cipher suite can be chosen.
    pub(crate) has_ciphers: bool,
    /// It sends several datagrams with one call.
    pub(crate) has_segmentation: bool,
    /// Pacing can be turned on and off.
    pub(crate) has_pacing: bool,
    /// It is as its authors publish it: not quinn on the engine, nor with the engine's seams.
    pub(crate) is_stock: bool,
    /// A variable of its environment.
    variable: Option<(&'static str, &'static str)>,
}

/// The stacks that can be had here, and lines about those that cannot.
pub(crate) fn all(python: &Path) -> (Vec<Stack>, Vec<String>) {
    let program = std::env::current_exe().unwrap_or_default();
    let beside = |name: &str| vec![program.with_file_name(name)];
    let aioquic = Path::new(env!("CARGO_MANIFEST_DIR")).join("../aioquic/kit-aioquic");
    let stack = |name, program| Stack {
        name,
        program,
        is_python: false,
        has_ciphers: true,
        has_segmentation: true,
        has_pacing: false,
        is_stock: true,
        variable: None,
    };
    let stacks = [
        stack("quinn", beside("kit-quinn")),
        stack("s2n-quic", beside("kit-s2n")),
        Stack { has_ciphers: false, has_pacing: true, ..stack("quiche", beside("kit-quiche")) },
        Stack {
            is_python: true,
            has_segmentation: false,
            ..stack("aioquic", vec![python.to_owned(), aioquic])
        },
        Stack { is_stock: false, ..stack(OFFLOAD, beside("kit-offload")) },
        Stack {
            is_stock: false,
            variable: Some(("KIT_OFFLOAD", "off")),
            ..stack(IN_SOFTWARE, beside("kit-offload"))
        },
    ];
    let mut missing = Vec::new();
    let mut there = Vec::new();
    for stack in stacks {
        match stack.is_there() {
            true => there.push(stack),
            false => missing.push(format!("{} is skipped: it is not installed", stack.name)),
        }
    }
    (there, missing)
}

impl Stack {
    /// Whether it can be begun.
    fn is_there(&self) -> bool {
        let mut command = self.command();
        command.arg("--help").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]);
        command.envs(self.variable);
        command
    }

    /// One side with its settings.
    pub(crate) fn side(&self, side: &str, setting: &Setting) -> Command {
        let mut command = self.command();
        command.args([side, "--cipher", &setting.cipher]);
        command.args(["--segmentation", on_or_off(setting.segmentation)]);
        if let Some(pacing) = setting.pacing {
            command.args(["--pacing", on_or_off(pacing)]);
        }
        command
    }
}

fn on_or_off(is_on: bool) -> &'static str {
    match is_on {
        true => "on",
        false => "off",
    }
}
