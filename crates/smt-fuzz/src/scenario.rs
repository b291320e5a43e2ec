// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scenario files: taken, or refused with a line that the file has.
//!
//! A file that is taken can run.

use smt_sim::lab::{Pattern, ScenarioFile, SmtMessenger};

/// Checks one file.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    match ScenarioFile::parse(text) {
        Ok(file) => check_taken(&file),
        Err(error) => {
            let lines = text.split('\n').count();
            assert!((1..=lines).contains(&error.line), "{error} of {lines}");
            assert!(!error.to_string().chars().any(char::is_control), "{error}");
        }
    }
}

fn check_taken(file: &ScenarioFile) {
    assert!(!file.about.contains(char::is_control), "{:?}", file.about);
    let scenario = file.scenario();
    let topology = &scenario.topology;
    let hosts = topology.hosts();
    assert!((2..=4_096).contains(&hosts));
    assert!((1..hosts).contains(&scenario.peers));
    assert!(scenario.warm_up < scenario.duration);
    match scenario.pattern {
        Pattern::Uniform { load } => assert!(ScenarioFile::LOADS.contains(&load)),
        Pattern::Incast { senders, every } => {
            assert!((1..hosts).contains(&senders) && !every.is_zero());
        }
    }
    let config = SmtMessenger::config(topology);
    assert!(config.unscheduled > 0 && config.incoming_max >= config.unscheduled);
}
