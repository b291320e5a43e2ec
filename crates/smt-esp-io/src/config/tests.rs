// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wrong files are told with line and field.

use super::*;

const GOOD: &str = r#"
[device]
name = "esp7"
addresses = ["10.9.0.1/24"]

[underlay]
local = "192.0.2.1"

[[association]]
direction = "out"
spi = 0x1001
suite = "aes-128-gcm"
key = "000102030405060708090a0b0c0d0e0f10111213"
peer = "192.0.2.2"

[[policy]]
selectors = { protocol = "tcp", remote-ports = "1-1023" }
"#;

fn refused(good: &str, bad: &str) -> String {
    assert!(GOOD.contains(good), "{good}");
    let text = GOOD.replacen(good, bad, 1);
    Config::parse(&text, "esp.toml").unwrap_err().to_string()
}

#[test]
fn a_good_file_is_read() {
    let config = Config::parse(GOOD, "esp.toml").unwrap();
    assert_eq!(config.device_name(), "esp7");
    assert_eq!(config.control_path(), Path::new("/run/smt-esp-esp7.sock"));
    assert_eq!(config.names(), ["default"]);
    let path = config.path_properties();
    assert_eq!(path.encapsulation.unwrap().local_port, 4_500);
}

#[test]
fn a_wrong_file_is_told_with_line_and_field() {
    for (good, bad, expected) in [
        ("spi = 0x1001", "spi = 7", "caller: esp.toml:9: association.spi: the SPI 7 is reserved"),
        (
            "0f10111213",
            "0f",
            "esp.toml:9: association.key: 16 bytes of keying material, where the suite has 20",
        ),
        ("0x1001", "\"x\"", "esp.toml:11: spi: invalid type: string \"x\", expected u32"),
        ("aes-128-gcm", "rot13", "esp.toml:12: suite: unknown variant `rot13`"),
        ("0f10111213", "0fXX", "esp.toml:13: key: a key is an even number of hexadecimal digits"),
        ("name = \"esp7\"", "nmae = \"esp7\"", "esp.toml:3: nmae: unknown field `nmae`"),
        (
            "\"192.0.2.2\"",
            "\"fd00::2\"",
            "esp.toml:9: association.peer: the peer and underlay.local",
        ),
        ("\"1-1023\"", "\"9-1\"", "esp.toml:17: selectors: \"9-1\" is no port"),
        (
            "[[policy]]",
            "[[policy]]\nassociation = \"x\"",
            "esp.toml:16: policy.association: no association",
        ),
        ("[underlay]", "[underlay]\nmtu = 68", "esp.toml:7: underlay.mtu: 68 bytes"),
        ("local = \"192.0.2.1\"", "", "missing field `local`"),
        ("[device]", "[device", "esp.toml:2:"),
    ] {
        let told = refused(good, bad);
        assert!(told.contains(expected), "{told}\nwhere expected {expected}");
        assert!(told.starts_with("caller: esp.toml:"), "{told}");
        assert!(!told.contains("0001020304"), "the key is not told: {told}");
    }
}

#[test]
fn two_associations_with_one_spi_are_refused() {
    let at = GOOD.find("[[association]]").unwrap();
    let end = GOOD.find("[[policy]]").unwrap();
    let text = format!("{}{}", GOOD, &GOOD[at..end]);
    let told = Config::parse(&text, "esp.toml").unwrap_err().to_string();
    assert!(told.contains("association.spi: 0x1001 is another association's too"), "{told}");
}

#[test]
fn a_file_that_others_may_read_is_refused() {
    let folder = std::env::temp_dir().join(format!("smt-esp-config-{}", std::process::id()));
    std::fs::write(&folder, GOOD).unwrap();
    let set = |mode| std::fs::set_permissions(&folder, PermissionsExt::from_mode(mode)).unwrap();
    set(0o644);
    let told = Config::read(&folder).unwrap_err();
    assert!(matches!(told, ConfigError::Exposed { .. }), "{told}");
    set(0o600);
    Config::read(&folder).unwrap();
    std::fs::remove_file(&folder).unwrap();
}
