//! Walking the tree in memory: folders and files that keep the state they were opened in.

use super::node::{Directory, MemoryFile, Node};
use crate::error::{Error, ErrorCode, Result};
use crate::path::quoted;
use crate::tree::{EntryList, FileRead, FileType, Folder, OpenFile};
use std::sync::Arc;

pub(super) struct MemoryFolder(pub(super) Arc<Directory>);

impl MemoryFolder {
    fn child(&self, name: &[u8]) -> Result<&Node> {
        let name = String::from_utf8_lossy(name);
        self.0.children.get(name.as_ref()).ok_or_else(|| gone(&name))
    }
}

fn gone(name: &str) -> Error {
    Error::new(
        ErrorCode::NotFound,
        format!("{} is not in this directory", quoted(name)),
    )
}

impl Folder for MemoryFolder {
    fn entries(&self, out: &mut EntryList) -> Result<()> {
        for (name, node) in &self.0.children {
            let file_type = match node {
                Node::File(_) => FileType::File,
                Node::Directory(_) => FileType::Directory,
            };
            out.push(name.as_bytes(), file_type);
        }
        Ok(())
    }

    fn open_folder(&self, name: &[u8]) -> Result<Box<dyn Folder>> {
        match self.child(name)? {
            Node::Directory(directory) => Ok(Box::new(MemoryFolder(Arc::clone(directory)))),
            Node::File(_) => {
                let shown = quoted(&String::from_utf8_lossy(name));
                Err(Error::new(
                    ErrorCode::NotDirectory,
                    format!("{shown} is not a directory"),
                ))
            }
        }
    }

    fn read_file(&self, name: &[u8], max_bytes: u64, buffer: &mut Vec<u8>) -> Result<FileRead> {
        buffer.clear();
        match self.child(name)? {
            Node::Directory(_) => Ok(FileRead::NotRegular),
            Node::File(file) if file.content.len() as u64 > max_bytes => Ok(FileRead::TooLarge),
            Node::File(file) => {
                buffer.extend_from_slice(&file.content);
                Ok(FileRead::Whole)
            }
        }
    }

    fn identity(&self) -> Result<(u64, u64)> {
        // A tree in memory has no loops; the address tells directories apart while they are held.
        Ok((0, Arc::as_ptr(&self.0) as u64))
    }
}

pub(super) struct MemoryOpenFile(pub(super) Arc<MemoryFile>);

impl OpenFile for MemoryOpenFile {
    fn size(&self) -> u64 {
        self.0.content.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.0.content.len());
        let rest = &self.0.content[start..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}
