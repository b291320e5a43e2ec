// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which measurements a run has, and in which order: all stacks once, then all again, so that
//! whatever the machine does meanwhile meets all alike.

use std::fs;
use std::path::Path;

use kit_process::{Doing, Failure};

use crate::RunOptions;
use crate::certificates::Certificates;
use crate::measure::{Bench, Setting};
use crate::page;
use crate::results::Results;
use crate::rules::Rules;
use crate::stacks::{self, Stack};

/// A part of the paper's figures.
struct Part {
    name: &'static str,
    /// The connections.
    connections: Vec<u32>,
    /// Percent of packets held back.
    reordered: Vec<f64>,
    /// Percent of packets lost.
    loss: Vec<f64>,
    is_sampled: bool,
}

/// Runs all of it.
pub(crate) fn run(options: &RunOptions) -> Result<(), Failure> {
    fs::create_dir_all(&options.into).doing("making the folder of results")?;
    let (all, missing) = stacks::all(&options.python);
    let is_chosen = |stack: &Stack| match options.stacks.is_empty() {
        true => stack.is_stock,
        false => stack.is_stock && options.stacks.iter().any(|name| name == stack.name),
    };
    let on_engine: Vec<Stack> = all.iter().filter(|stack| !stack.is_stock).cloned().collect();
    let chosen: Vec<Stack> = all.into_iter().filter(is_chosen).collect();
    for line in &missing {
        println!("{line}");
    }
    let mut run = Run {
        options,
        rules: Rules::read(&options.rules)?,
        certificates: Certificates::make(&options.into)?,
        results: Results { about: about(options), missing, ..Results::default() },
    };
    match options.smoke {
        true => run.smoke(&chosen, &on_engine)?,
        false => run.paper(&chosen, &on_engine)?,
    }
    run.results.write(&options.into)?;
    page::write(&run.results, &options.into)?;
    let failed = run.results.missing.iter().filter(|line| line.contains(FAILED)).count();
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(format!("{failed} measurements failed"))),
    }
}

struct Run<'a> {
    options: &'a RunOptions,
    rules: Rules,
    certificates: Certificates,
    results: Results,
}

impl Run<'_> {
    /// One small transfer of each stack, and one with everything turned on.
    fn smoke(&mut self, stacks: &[Stack], on_engine: &[Stack]) -> Result<(), Failure> {
        for stack in stacks {
            let plain = Setting { bytes: 1_000_000, ..self.setting(stack, 0) };
            let hard = Setting { connections: 3, loss: 1.0, reordered: 2.0, ..plain.clone() };
            self.measure("t2", (stack, stack), &plain, true)?;
            self.measure("f7", (stack, stack), &hard, false)?;
        }
        self.offload(stacks, on_engine, 1_000_000)
    }

    fn paper(&mut self, stacks: &[Stack], on_engine: &[Stack]) -> Result<(), Failure> {
        let only = &self.options.only;
        let is_wanted = |name: &str| only.is_empty() || only.iter().any(|of| of == name);
        for part in parts(self.options.connections) {
            if is_wanted(part.name) {
                self.part(stacks, &part)?;
            }
        }
        if is_wanted("settings") {
            self.settings(stacks)?;
        }
        if is_wanted("offload") {
            for _ in 0..self.options.repeat {
                self.offload(stacks, on_engine, self.options.bytes)?;
            }
        }
        Ok(())
    }

    /// quinn on the engine, in software with the engine's seams, and as it is: as a client of
    /// quinn's server, and as a server of quinn's client.
    fn offload(
        &mut self,
        stacks: &[Stack],
        on_engine: &[Stack],
        bytes: u64,
    ) -> Result<(), Failure> {
        let Some(quinn) = stacks.iter().find(|stack| stack.name == "quinn") else {
            return Ok(());
        };
        let setting = Setting { bytes, ..self.setting(quinn, 0) };
        self.measure("offload", (quinn, quinn), &setting, true)?;
        for stack in on_engine {
            self.measure("offload", (quinn, stack), &setting, true)?;
            self.measure("offload", (stack, quinn), &setting, true)?;
        }
        Ok(())
    }

    fn part(&mut self, stacks: &[Stack], part: &Part) -> Result<(), Failure> {
        for repetition in 0..self.options.repeat {
            for &connections in &part.connections {
                for &reordered in &part.reordered {
                    for &loss in &part.loss {
                        for stack in stacks {
                            let setting = Setting {
                                connections,
                                reordered,
                                loss,
                                ..self.setting(stack, repetition)
                            };
                            // The paper's Quant has one connection, too: a stack in Python would
                            // take hours.
                            if !(stack.is_python && connections > PYTHON_CONNECTIONS_MAX) {
                                let both = (stack, stack);
                                self.measure(part.name, both, &setting, part.is_sampled)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The settings that the paper did not have: segmentation, pacing and ciphers.
    fn settings(&mut self, stacks: &[Stack]) -> Result<(), Failure> {
        for repetition in 0..self.options.repeat {
            for stack in stacks {
                let setting = self.setting(stack, repetition);
                let mut variants = vec![setting.clone()];
                if stack.has_segmentation {
                    variants.push(Setting { segmentation: false, ..setting.clone() });
                }
                if stack.has_pacing {
                    variants.extend(
                        [true, false]
                            .map(|pacing| Setting { pacing: Some(pacing), ..setting.clone() }),
                    );
                }
                if stack.has_ciphers {
                    variants.push(Setting { cipher: "chacha20".to_owned(), ..setting });
                }
                for setting in variants {
                    self.measure("settings", (stack, stack), &setting, true)?;
                }
            }
        }
        Ok(())
    }

    fn setting(&self, stack: &Stack, repetition: u32) -> Setting {
        let bytes = match stack.is_python {
            true => self.options.bytes.min(self.options.slow_bytes),
            false => self.options.bytes,
        };
        Setting {
            bytes,
            connections: 1,
            cipher: "aes128".to_owned(),
            segmentation: true,
            pacing: None,
            loss: 0.0,
            reordered: 0.0,
            seed: self.options.seed + u64::from(repetition),
        }
    }

    /// A measurement that fails is told, and the next one goes on.
    fn measure(
        &mut self,
        part: &str,
        (server, client): (&Stack, &Stack),
        setting: &Setting,
        is_sampled: bool,
    ) -> Result<(), Failure> {
        let bench = Bench {
            folder: &self.options.into,
            certificates: &self.certificates,
            rules: &self.rules,
        };
        match bench.measure((server, client), setting, is_sampled) {
            Ok(outcome) => {
                println!(
                    "{part} {}: {} connections, {} % lost, {} % held: {:.0} Mbit/s",
                    server.name, setting.connections, setting.loss, setting.reordered, outcome.all
                );
                let outcomes = self.results.parts.entry(part.to_owned());
                outcomes.or_default().push(outcome);
            }
            Err(failure) => {
                let line = format!("{part} {} {FAILED}: {failure} ({setting:?})", server.name);
                println!("{line}");
                self.results.missing.push(line);
            }
        }
        self.results.write(&self.options.into)
    }
}

fn parts(connections_max: u32) -> Vec<Part> {
    let degrees = vec![0.0, 0.5, 1.0, 2.0, 5.0, 10.0];
    let counts = [1, 2, 4, 8, 16, 32, 64];
    let counts = counts.into_iter().filter(|count| *count <= connections_max);
    let part = |name| Part {
        name,
        connections: vec![1],
        reordered: vec![0.0],
        loss: vec![0.0],
        is_sampled: false,
    };
    vec![
        Part { is_sampled: true, ..part("t2") },
        Part { reordered: degrees.clone(), is_sampled: true, ..part("f3") },
        Part { loss: vec![0.0, 0.5, 1.0, 2.0, 5.0], is_sampled: true, ..part("f4") },
        Part { connections: counts.collect(), ..part("f5") },
        Part {
            connections: vec![connections_max.min(21)],
            reordered: degrees.clone(),
            ..part("f7")
        },
        Part { connections: vec![connections_max.min(21)], loss: degrees, ..part("f8") },
    ]
}

/// The machine and the options.
fn about(options: &RunOptions) -> Vec<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": ")).map_or("?", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("?");
    let perf = match Path::new("/usr/bin/perf").exists() {
        true => "perf, cpu-clock, frame pointers",
        false => "no perf: no samples",
    };
    vec![
        format!("{model}, {cores} cores, Linux {}", kernel.trim()),
        format!("load average at the start: {load}"),
        format!(
            "{} bytes a transfer ({} in Python), {} repetitions, seed {}",
            options.bytes, options.slow_bytes, options.repeat, options.seed
        ),
        format!("samples: {perf}; aioquic: stacks of Python at each tick of its CPU time"),
    ]
}

const FAILED: &str = "failed";
const PYTHON_CONNECTIONS_MAX: u32 = 4;
