// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types of events in a log of firmware, and their names (*TCG PC Client Platform Firmware
//! Profile*, section 10.4.1).

use std::fmt;
use std::str::FromStr;

/// The type of an event.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct EventKind(pub u32);

impl EventKind {
    /// An event that extends no register.
    pub const NO_ACTION: Self = Self(3);
}

const NAMES: [(u32, &str); 34] = [
    (0x0000_0000, "EV_PREBOOT_CERT"),
    (0x0000_0001, "EV_POST_CODE"),
    (0x0000_0003, "EV_NO_ACTION"),
    (0x0000_0004, "EV_SEPARATOR"),
    (0x0000_0005, "EV_ACTION"),
    (0x0000_0006, "EV_EVENT_TAG"),
    (0x0000_0007, "EV_S_CRTM_CONTENTS"),
    (0x0000_0008, "EV_S_CRTM_VERSION"),
    (0x0000_0009, "EV_CPU_MICROCODE"),
    (0x0000_000a, "EV_PLATFORM_CONFIG_FLAGS"),
    (0x0000_000b, "EV_TABLE_OF_DEVICES"),
    (0x0000_000c, "EV_COMPACT_HASH"),
    (0x0000_000d, "EV_IPL"),
    (0x0000_000e, "EV_IPL_PARTITION_DATA"),
    (0x0000_000f, "EV_NONHOST_CODE"),
    (0x0000_0010, "EV_NONHOST_CONFIG"),
    (0x0000_0011, "EV_NONHOST_INFO"),
    (0x0000_0012, "EV_OMIT_BOOT_DEVICE_EVENTS"),
    (0x8000_0001, "EV_EFI_VARIABLE_DRIVER_CONFIG"),
    (0x8000_0002, "EV_EFI_VARIABLE_BOOT"),
    (0x8000_0003, "EV_EFI_BOOT_SERVICES_APPLICATION"),
    (0x8000_0004, "EV_EFI_BOOT_SERVICES_DRIVER"),
    (0x8000_0005, "EV_EFI_RUNTIME_SERVICES_DRIVER"),
    (0x8000_0006, "EV_EFI_GPT_EVENT"),
    (0x8000_0007, "EV_EFI_ACTION"),
    (0x8000_0008, "EV_EFI_PLATFORM_FIRMWARE_BLOB"),
    (0x8000_0009, "EV_EFI_HANDOFF_TABLES"),
    (0x8000_000a, "EV_EFI_PLATFORM_FIRMWARE_BLOB2"),
    (0x8000_000b, "EV_EFI_HANDOFF_TABLES2"),
    (0x8000_000c, "EV_EFI_VARIABLE_BOOT2"),
    (0x8000_0010, "EV_EFI_HCRTM_EVENT"),
    (0x8000_00e0, "EV_EFI_VARIABLE_AUTHORITY"),
    (0x8000_00e1, "EV_EFI_SPDM_FIRMWARE_BLOB"),
    (0x8000_00e2, "EV_EFI_SPDM_FIRMWARE_CONFIG"),
];

impl fmt::Display for EventKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(number, _)| *number == self.0) {
            Some((_, name)) => out.write_str(name),
            None => write!(out, "0x{:08x}", self.0),
        }
    }
}

/// A text that names no type of events.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("neither a name such as EV_SEPARATOR nor a number such as 0x80000003")]
pub struct EventKindError;

impl FromStr for EventKind {
    type Err = EventKindError;

    fn from_str(text: &str) -> Result<Self, EventKindError> {
        if let Some((number, _)) = NAMES.iter().find(|(_, name)| *name == text) {
            return Ok(Self(*number));
        }
        let digits = text.strip_prefix("0x").ok_or(EventKindError)?;
        u32::from_str_radix(digits, 16).map(Self).map_err(|_| EventKindError)
    }
}
