//! In the place of the disk tree where it is not built yet (Windows): opening one says so. The same names, so
//! that the rest of the crate compiles.

use super::{
    Change, DiskOptions, Entry, OpenFile, RemoveOptions, Stat, Tree, UpdateOptions, WalkStart, WriteOptions,
};
use crate::error::{Error, ErrorCode, Result};
use std::convert::Infallible;
use std::path::Path;

/// How paths become descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolver {
    Kernel,
    Walk,
}

/// There is none.
pub struct DiskTree(Infallible);

impl DiskTree {
    pub fn open(_options: &DiskOptions) -> Result<Self> {
        Err(Error::new(
            ErrorCode::Unsupported,
            "confined directories are not supported on this platform yet: use MemoryWorkspace, or Linux",
        ))
    }

    pub fn open_with(options: &DiskOptions, _resolver: Resolver) -> Result<Self> {
        Self::open(options)
    }

    pub fn set_gate(&mut self, _gate: super::SharedGate) {
        match self.0 {}
    }

    pub fn real_path(&self) -> &Path {
        match self.0 {}
    }
}

impl Tree for DiskTree {
    fn read(&self, _path: &str, _max_bytes: u64) -> Result<Vec<u8>> {
        match self.0 {}
    }

    fn read_now(&self, _path: &str, _max_bytes: u64) -> Option<Result<Vec<u8>>> {
        match self.0 {}
    }

    fn open_file(&self, _path: &str) -> Result<Box<dyn OpenFile>> {
        match self.0 {}
    }

    fn write(&self, _path: &str, _content: &[u8], _options: &WriteOptions) -> Result<()> {
        match self.0 {}
    }

    fn update(&self, _path: &str, _options: &UpdateOptions, _change: &mut Change<'_>) -> Result<bool> {
        match self.0 {}
    }

    fn stat(&self, _path: &str) -> Result<Option<Stat>> {
        match self.0 {}
    }

    fn stat_now(&self, _path: &str) -> Option<Result<Option<Stat>>> {
        match self.0 {}
    }

    fn read_dir(&self, _path: &str, _sizes: bool) -> Result<Vec<Entry>> {
        match self.0 {}
    }

    fn make_dir(&self, _path: &str) -> Result<()> {
        match self.0 {}
    }

    fn remove(&self, _path: &str, _options: &RemoveOptions) -> Result<()> {
        match self.0 {}
    }

    fn rename(&self, _from: &str, _to: &str, _overwrite: bool) -> Result<()> {
        match self.0 {}
    }

    fn set_mode(&self, _path: &str, _mode: u32) -> Result<()> {
        match self.0 {}
    }

    fn open_walk(&self, _path: &str) -> Result<WalkStart> {
        match self.0 {}
    }
}
