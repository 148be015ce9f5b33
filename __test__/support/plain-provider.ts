/** A provider as somebody else would write it: six methods over node:fs, with plain errors and no idea of confinement. */
import { promises as fs } from 'node:fs';
import { join, posix } from 'node:path';
import { WorkspaceError, type DirectoryEntry, type FileStat, type FsProvider } from 'croft';

type Named = { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean };

function typeOf(entry: Named): FileStat['type'] {
  if (entry.isFile()) return 'file';
  if (entry.isDirectory()) return 'directory';
  return entry.isSymbolicLink() ? 'symlink' : 'other';
}

export function plainProvider(root: string): FsProvider {
  const at = (path: string): string => join(root, posix.normalize(path));
  return {
    readFile: async (path) => {
      const bytes = await fs.readFile(at(path));
      if (bytes.includes(0)) throw new WorkspaceError(`"${path}" is not text`, 'BINARY_FILE');
      return bytes.toString('utf8');
    },
    writeFile: async (path, content) => await fs.writeFile(at(path), content),
    stat: async (path) => {
      const found = await fs.lstat(at(path)).catch(() => undefined);
      return found && { type: typeOf(found), size: found.size, mtimeMs: found.mtimeMs };
    },
    readdir: async (path) => {
      const entries = await fs.readdir(at(path), { withFileTypes: true });
      return entries.map((entry): DirectoryEntry => ({ name: entry.name, type: typeOf(entry) }));
    },
    mkdir: async (path) => void (await fs.mkdir(at(path), { recursive: true })),
    rm: async (path) => await fs.rm(at(path), { recursive: true }),
  };
}
