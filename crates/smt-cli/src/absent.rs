// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parts that a build of this command may lack: each has a feature, since no call needs it.
//!
//! An operator who asks for one learns how to get it.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::failure::Failure;

/// A part that can be left out of a build.
struct Part {
    feature: &'static str,
    about: &'static str,
    is_here: bool,
    /// Its subcommands.
    commands: &'static [&'static str],
    /// How the names of its options begin.
    options: &'static [&'static str],
    /// Its values of other options.
    values: &'static [&'static str],
}

const PARTS: [Part; 7] = [
    Part {
        feature: "dns",
        about: "tickets in DNS",
        is_here: cfg!(feature = "dns"),
        commands: &["ticket"],
        options: &["--tickets", "--tsig-key", "--resolver", "--dnssec"],
        values: &[],
    },
    Part {
        feature: "dump",
        about: "the reader of captures",
        is_here: cfg!(feature = "dump"),
        commands: &["dump"],
        options: &[],
        values: &[],
    },
    Part {
        feature: "esp",
        about: "ESP tunnels, key daemons and what these hand over",
        is_here: cfg!(feature = "esp"),
        commands: &["adopt", "esp", "keyd"],
        options: &[],
        values: &[],
    },
    Part {
        feature: "man",
        about: "manual pages and completions",
        is_here: cfg!(feature = "man"),
        commands: &["completions", "man"],
        options: &[],
        values: &[],
    },
    Part {
        feature: "nic",
        about: "the model of a NIC",
        is_here: cfg!(feature = "nic"),
        commands: &[],
        options: &["--tun", "--psp", "--untrusted-nic"],
        values: &["nic"],
    },
    Part {
        feature: "perf",
        about: "measurements",
        is_here: cfg!(feature = "perf"),
        commands: &["perf"],
        options: &[],
        values: &[],
    },
    Part {
        feature: "sim",
        about: "the simulator",
        is_here: cfg!(feature = "sim"),
        commands: &["sim"],
        options: &[],
        values: &[],
    },
];

/// The failure of arguments that ask for what this build lacks; `None` if they are wrong otherwise.
pub(crate) fn failure(error: &clap::Error) -> Option<Failure> {
    let part = PARTS.iter().find(|part| !part.is_here && part.is_meant(error))?;
    let Part { feature, about, .. } = part;
    Some(Failure::usage(format!(
        "this build lacks {about}: install one by `cargo install --path crates/smt-cli --features {feature}`, or one with all parts by `--features full`"
    )))
}

impl Part {
    /// Whether the arguments asked for this part.
    fn is_meant(&self, error: &clap::Error) -> bool {
        let named = |kind| match error.get(kind) {
            Some(ContextValue::String(name)) => name.as_str(),
            _ => "",
        };
        match error.kind() {
            ErrorKind::InvalidSubcommand => {
                self.commands.contains(&named(ContextKind::InvalidSubcommand))
            }
            ErrorKind::UnknownArgument => {
                let name = named(ContextKind::InvalidArg);
                self.options.iter().any(|option| name.starts_with(option))
            }
            ErrorKind::InvalidValue => {
                let argument = named(ContextKind::InvalidArg);
                argument.starts_with("--carrier")
                    && self.values.contains(&named(ContextKind::InvalidValue))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    enum Other {
        Call {
            #[arg(long)]
            carrier: Option<Carrier>,
        },
    }

    #[derive(Clone, Debug, clap::ValueEnum)]
    enum Carrier {
        Udp,
    }

    #[test]
    fn a_part_is_found_by_its_commands_options_and_values_alone() {
        for (words, feature) in [
            ("smt sim run", Some("sim")),
            ("smt keyd", Some("esp")),
            ("smt call --tickets-name x", Some("dns")),
            ("smt call --psp", Some("nic")),
            ("smt call --carrier nic", Some("nic")),
            ("smt call --carrier tcp", None),
            ("smt call --other", None),
            ("smt other", None),
        ] {
            let error = Other::try_parse_from(words.split(' ')).unwrap_err();
            let meant = PARTS.iter().find(|part| part.is_meant(&error));
            assert_eq!(meant.map(|part| part.feature), feature, "{words}");
        }
    }
}
