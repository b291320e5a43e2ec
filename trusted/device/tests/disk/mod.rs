// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A disk in memory of which a crash keeps what was synced, and any part of the rest.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard};

use smt_device::{Files, Slot};
use smt_simulation::Random;
use zeroize::Zeroizing;

/// Bytes that a disk writes at once.
const SECTOR: usize = 512;

/// A promise that a disk does not keep.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Lie {
    #[default]
    Nothing,
    /// It does not sync the bytes of files.
    OfBytes,
    /// It does not sync names.
    OfNames,
}

/// The files, shared by all who have them open.
#[derive(Clone)]
pub(crate) struct ModelFiles(Arc<Mutex<Disk>>);

#[derive(Default)]
struct Disk {
    lie: Lie,
    /// Files by their number; a name is a way to one.
    files: Vec<File>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Changes of names that were not synced, in order.
    changes: Vec<Change>,
    /// Steps until the process dies.
    left: u32,
}

#[derive(Clone, Default)]
struct File {
    current: Vec<u8>,
    durable: Vec<u8>,
}

#[derive(Clone)]
enum Change {
    Made(String, usize),
    Renamed(String, String),
}

impl ModelFiles {
    pub(crate) fn new(lie: Lie) -> Self {
        Self(Arc::new(Mutex::new(Disk { lie, ..Disk::default() })))
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap()
    }

    pub(crate) fn crashes_after(&self, steps: u32) {
        self.disk().left = steps;
    }

    /// Leaves what a crash leaves. True if something was lost or torn.
    pub(crate) fn crash(&self, random: &mut Random) -> bool {
        let disk = &mut *self.disk();
        let kept = random.below(disk.changes.len() as u64 + 1) as usize;
        let mut is_torn = kept < disk.changes.len();
        let mut names = disk.durable_names.clone();
        disk.changes.drain(..).take(kept).for_each(|change| change.apply(&mut names));
        for file in &mut disk.files {
            if file.current != file.durable {
                is_torn = true;
                file.tear(random);
            }
        }
        disk.names.clone_from(&names);
        disk.durable_names = names;
        is_torn
    }

    /// The disk, if the process lives. Each step may be its last, done or not.
    fn step<T>(&self, step: impl FnOnce(&mut Disk) -> io::Result<T>) -> io::Result<T> {
        let disk = &mut *self.disk();
        if disk.left == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        disk.left -= 1;
        let done = step(disk);
        // Half of the deaths come between the step and its answer.
        if disk.left == 0 && disk.files.len().is_multiple_of(2) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        done
    }
}

impl Change {
    fn apply(self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Made(name, file) => {
                names.insert(name, file);
            }
            Self::Renamed(from, to) => {
                if let Some(file) = names.remove(&from) {
                    names.insert(to, file);
                }
            }
        }
    }
}

impl File {
    /// Each sector is as it was, as it was written, or zeros; the length is one of the two.
    fn tear(&mut self, random: &mut Random) {
        let lengths = [self.current.len(), self.durable.len()];
        let length = lengths[random.below(2) as usize];
        let mut after = vec![0; length];
        for (number, sector) in after.chunks_mut(SECTOR).enumerate() {
            let from = match random.below(3) {
                0 => &self.current,
                1 => &self.durable,
                _ => continue,
            };
            let bytes = from.get(number * SECTOR..).unwrap_or_default();
            let count = bytes.len().min(sector.len());
            sector[..count].copy_from_slice(&bytes[..count]);
        }
        self.current.clone_from(&after);
        self.durable = after;
    }
}

impl Disk {
    fn file(&mut self, name: &str) -> io::Result<&mut File> {
        let number = self.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(&mut self.files[*number])
    }
}

impl Files for ModelFiles {
    fn place(&self) -> String {
        "a model".to_owned()
    }

    fn exists(&self, name: &str) -> bool {
        self.disk().names.contains_key(name)
    }

    fn read(&self, name: &str) -> io::Result<Zeroizing<Vec<u8>>> {
        let mut disk = self.disk();
        Ok(Zeroizing::new(disk.file(name)?.current.clone()))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.step(|disk| {
            if !disk.names.contains_key(name) {
                let number = disk.files.len();
                disk.files.push(File::default());
                disk.names.insert(name.to_owned(), number);
                disk.changes.push(Change::Made(name.to_owned(), number));
            }
            disk.file(name)?.current = bytes.to_vec();
            Ok(())
        })
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        self.step(|disk| {
            let is_done = disk.lie != Lie::OfBytes;
            let file = disk.file(name)?;
            if is_done {
                file.durable.clone_from(&file.current);
            }
            Ok(())
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.step(|disk| {
            let change = Change::Renamed(from.to_owned(), to.to_owned());
            disk.changes.push(change.clone());
            change.apply(&mut disk.names);
            Ok(())
        })
    }

    fn sync_names(&self) -> io::Result<()> {
        self.step(|disk| {
            if disk.lie != Lie::OfNames {
                disk.changes.clear();
                disk.durable_names.clone_from(&disk.names);
            }
            Ok(())
        })
    }

    fn slot(&self, name: &str) -> io::Result<Box<dyn Slot + Send>> {
        Ok(Box::new(ModelSlot { files: self.clone(), name: name.to_owned() }))
    }
}

/// A file of a model that stays open.
struct ModelSlot {
    files: ModelFiles,
    name: String,
}

impl Slot for ModelSlot {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.files.write(&self.name, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.files.sync(&self.name)
    }

    fn descriptor(&self) -> Option<RawFd> {
        None
    }
}
