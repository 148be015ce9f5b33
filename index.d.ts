/**
 * croft: a fenced plot for AI agents. This file is the contract: every type, option, unit, default and error.
 * The compiler checks it against the code (ts/contract.ts). Sizes are bytes, times are milliseconds, characters
 * are UTF-16 code units as `string.length` counts them, lines count from 1.
 */
import type { z } from 'zod';

// ---------------------------------------------------------------- errors

/** Every stable `code` of a {@link WorkspaceError}. docs/errors.md explains each and its way out. */
export type WorkspaceErrorCode =
  | 'INVALID_ARGUMENT'
  | 'INVALID_PATH'
  | 'OUTSIDE_WORKSPACE'
  | 'LINK_REFUSED'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'IS_DIRECTORY'
  | 'NOT_DIRECTORY'
  | 'NOT_REGULAR_FILE'
  | 'DIRECTORY_NOT_EMPTY'
  | 'PROTECTED_PATH'
  | 'ACCESS_DENIED'
  | 'READ_ONLY_FILE_SYSTEM'
  | 'NO_SPACE'
  | 'TOO_MANY_OPEN_FILES'
  | 'TOO_LARGE'
  | 'BINARY_FILE'
  | 'UNSUPPORTED_ENCODING'
  | 'OFFSET_PAST_END'
  | 'EDIT_NO_MATCH'
  | 'EDIT_AMBIGUOUS'
  | 'STALE'
  | 'ANCHOR_MISMATCH'
  | 'PATCH_INVALID'
  | 'PATCH_CONFLICT'
  | 'INVALID_GLOB'
  | 'INVALID_REGEX'
  | 'UNSUPPORTED_REGEX'
  | 'SEARCH_LIMIT'
  | 'POLICY_DENIED'
  | 'CLOSED'
  | 'ABORTED'
  | 'SPAWN_FAILED'
  | 'PROCESS_NOT_FOUND'
  | 'GIT_FAILED'
  | 'SANDBOX_UNAVAILABLE'
  | 'LOUSHO_SANDBOX_EGRESS_UNSUPPORTED'
  | 'BROKER_FAILED'
  | 'UNSUPPORTED'
  | 'IO'
  | 'INTERNAL';

/**
 * A refusal or failure that a model can act on. The message uses workspace paths, never a host path or a secret,
 * and says what to do instead.
 */
export class WorkspaceError extends Error {
  constructor(message: string, code?: WorkspaceErrorCode, options?: { path?: string | undefined; cause?: unknown });
  readonly name: string;
  readonly code: WorkspaceErrorCode;
  /** The workspace path concerned, as the caller wrote it. */
  readonly path: string | undefined;
}

/** The policy says deny (`code: 'POLICY_DENIED'`). */
export class PermissionDeniedError extends WorkspaceError {
  constructor(message: string, options?: { path?: string | undefined; cause?: unknown });
}

/** The workspace is closed (`code: 'CLOSED'`). */
export class WorkspaceClosedError extends WorkspaceError {
  constructor(message?: string, options?: { cause?: unknown });
}

// ---------------------------------------------------------------- providers

export interface CallOptions {
  /** Abort settles the call within 250 ms with `ABORTED`; a signal that is already aborted starts nothing. */
  signal?: AbortSignal | undefined;
}

export interface FileStat {
  type: 'file' | 'directory' | 'symlink' | 'other';
  /** Bytes. */
  size: number;
  mtimeMs?: number;
  /** Permission bits, for example `0o644`. */
  mode?: number;
}

export interface DirectoryEntry {
  /** A name that is not UTF-8 is shown with `\xNN` and has `unreadable: true`. */
  name: string;
  type: 'file' | 'directory' | 'symlink' | 'other';
  /** Links only: the type of the target when it is inside the workspace. */
  target?: 'file' | 'directory' | 'symlink' | 'other';
  unreadable?: boolean;
}

/** Six methods give an agent files. Paths are workspace-relative with `/`. Throw `WorkspaceError` on failure. */
export interface FsProvider {
  readFile(path: string, options?: CallOptions): Promise<string>;
  writeFile(path: string, content: string, options?: CallOptions & { createOnly?: boolean }): Promise<void>;
  stat(path: string, options?: CallOptions): Promise<FileStat | undefined>;
  readdir(path: string, options?: CallOptions): Promise<DirectoryEntry[]>;
  mkdir(path: string, options?: CallOptions): Promise<void>;
  rm(path: string, options?: CallOptions & { recursive?: boolean }): Promise<void>;
}

export interface ExecOptions extends CallOptions {
  /** Workspace-relative. Default: the root. */
  cwd?: string;
  /** Added last; wins over everything inherited. */
  env?: Record<string, string>;
  /** Default: none. At the timeout the whole process tree is ended and the output so far is returned. */
  timeoutMs?: number;
  /** Written to stdin, which is at end of file otherwise. */
  input?: string | Uint8Array;
  /** Per stream, default 1 MiB, marker included; head and tail are kept. */
  maxOutputBytes?: number;
  /** Replaces `maxOutputBytes` by one budget for both streams; later bytes are dropped. */
  capture?: { maxBytes: number; shared: true; keep: 'head' };
  /** Called with each piece of decoded output as it arrives. */
  onOutput?: (output: { stream: 'stdout' | 'stderr'; text: string }) => void;
  /**
   * What becomes of processes that outlive the shell: `'kill'` (default) ends them and says so in `note`;
   * `'keep'` makes them the workspace's, ended by `close()`.
   */
  leftover?: 'kill' | 'keep';
  /** Time between SIGTERM and SIGKILL, at most 60,000. Default 500. */
  killGraceMs?: number;
}

export interface ExecResult {
  stdout: string;
  stderr: string;
  /** 128 + n when the command died of signal n. */
  exitCode: number;
  timedOut: boolean;
  aborted?: boolean;
  /** For example `'SIGKILL'`. */
  signal?: string;
  /** Output was dropped to stay within the budget. */
  truncated?: boolean;
  /** Exact, both streams together. */
  droppedBytes?: number;
  durationMs?: number;
  /** For the model: what was killed, and what to do instead. */
  note?: string;
  /** How surely the command's descendants were held; see {@link WorkspaceCapabilities}. */
  containment?: 'cgroup' | 'subreaper' | 'group' | 'container';
}

export interface SpawnOptions extends CallOptions {
  /** Workspace-relative. Default: the root. */
  cwd?: string;
  /** Added last; wins over everything inherited. */
  env?: Record<string, string>;
  /** The newest characters kept between two reads. Default 30,000. */
  maxOutputChars?: number;
  /** Time between SIGTERM and SIGKILL, at most 60,000. Default 500. */
  killGraceMs?: number;
}

/** `'killed'`: by `killProcess` or `close`. A process that died of another signal is `'exited'`. */
export type ProcessStatus = 'running' | 'exited' | 'killed';

export interface BackgroundProcess {
  id: string;
  /** As the place counts where it runs, such as a container; 0 when an executor does not tell. */
  pid: number;
  command: string;
  status: ProcessStatus;
  /** Set once it has ended; 128 + n when it died of signal n. */
  exitCode?: number;
}

export interface ProcessOutput {
  /** stdout and stderr as they arrived, since the last read. */
  output: string;
  status: ProcessStatus;
  exitCode?: number;
  /** Older characters that were dropped since the last read. */
  droppedChars: number;
}

/** What keeps commands in the background. */
export interface ProcessProvider {
  spawn(command: string, options?: SpawnOptions): Promise<BackgroundProcess>;
  readProcessOutput(id: string, options?: CallOptions & { waitMs?: number }): Promise<ProcessOutput>;
  killProcess(id: string): Promise<ProcessOutput>;
}

/** One method gives an agent a shell. It resolves for a non-zero exit, a timeout and an abort alike. */
export interface ShellProvider {
  exec(command: string, options?: ExecOptions): Promise<ExecResult>;
}

// ---------------------------------------------------------------- files

/** How a path may be written; `''` and `'.'` are the root. */
export type PathPlatform = 'posix' | 'win32';

/**
 * The workspace-relative path with `/` separators (`.` for the root). Throws `OUTSIDE_WORKSPACE` for a `..` that
 * climbs above the root and for absolute paths, drives and UNC forms, `INVALID_PATH` for NUL and the like.
 * Backslash is a separator everywhere. `platform` defaults to the host's.
 */
export function normalizeWorkspacePath(path: string, platform?: PathPlatform): string;

export interface PageOptions {
  /** First line, from 1. Default 1. */
  offset?: number;
  /** Lines. Default 2000. */
  limit?: number;
  /** Characters of the whole page. Default 50,000. */
  maxChars?: number;
  /** 8 to 64: lines are shown as `L{n}:{hash}:{text}`, with so many digits of the line's hash. */
  hashLength?: number;
}

export interface Page {
  /** Lines of 6-column number, TAB, text; notes are lines of their own in square brackets. */
  text: string;
  firstLine: number;
  lastLine: number;
  totalLines: number;
  /** Exact: true when a line or part of a line of the file after `offset` is not in `text`. */
  truncated: boolean;
  /** Where to go on reading. */
  nextOffset?: number;
}

export interface TextEdit {
  oldString: string;
  newString: string;
  /** Replace every occurrence. Default false: more than one is `EDIT_AMBIGUOUS`. */
  replaceAll?: boolean;
}

export interface EditOptions extends TextEdit {
  /**
   * `'preserve'` (default): an LF `oldString` also matches a CRLF region, and the replacement takes the region's
   * ending. `'strict'`: bytes must match exactly.
   */
  lineEndings?: 'preserve' | 'strict';
}

export interface EditResult {
  replacements: number;
  /** Line of the first replacement; 0 when nothing changed. */
  firstLine: number;
  /** False when `oldString === newString`. */
  changed: boolean;
  note?: string;
}

export interface MultiEditOptions extends CallOptions, Pick<EditOptions, 'lineEndings'> {}

export interface MultiEditResult {
  /** In the order of the list. `firstLine` as numbered after that edit; 0 without a change. */
  edits: { replacements: number; firstLine: number }[];
  changed: boolean;
  note?: string;
}

/** An edit of lines named by number and hash, numbered as the file was read. */
export interface HashEdit {
  line: number;
  /** Hash of that line, of at least `hashLength` hex digits. */
  hash: string;
  /** Last line of a range, for `'replace'` and `'delete'`. */
  endLine?: number;
  /** For a range, the hash of every line in it. */
  hashes?: string[];
  op: 'replace' | 'insert_before' | 'insert_after' | 'delete';
  /** One or more lines; a final newline ends the last of them. */
  content?: string;
}

export interface HashEditOptions {
  /** Hex digits an anchor needs at least, as the reading showed them. 8 to 64, default 64. */
  hashLength?: number;
}

export interface HashEditResult {
  changed: boolean;
  /** The first line that changed, as numbered afterwards; 0 when nothing changed. */
  firstLine: number;
  linesAdded: number;
  linesRemoved: number;
}

export interface PatchOptions extends CallOptions {
  /** Context lines that a hunk may lose at each end, 0 to 2. Default 0. */
  fuzz?: number;
}

export interface PatchedFile {
  action: 'create' | 'update' | 'delete' | 'rename' | 'copy';
  path: string;
  /** Where a renamed or copied file came from. */
  from?: string;
  /** `hunk` counts from 1; `line` is where it went, `offset` lines from the place it names. */
  hunks: { hunk: number; line: number; offset: number; fuzz: number }[];
  /** Set when the patch changes the executable bits. */
  executable?: boolean;
}

export interface GlobOptions extends CallOptions {
  /** Directory to search below; patterns match the path below it. Default: the root. */
  path?: string;
  /** Default 200. */
  maxResults?: number;
  /** Default 20,000. */
  maxFilesScanned?: number;
  /** Directory names skipped at any depth. Default `['.git', 'node_modules']`. */
  ignore?: string[];
  /** Honour `.gitignore`. Default true. */
  gitignore?: boolean;
}

export interface GlobResult {
  /** Root-relative, sorted by bytes. */
  paths: string[];
  truncated: boolean;
  filesScanned: number;
  /** Directories that could not be read. */
  unreadable: number;
}

export interface GrepOptions extends GlobOptions {
  /** Only files whose path below `path` matches (a pattern without `/` matches the name at any depth). */
  glob?: string;
  ignoreCase?: boolean;
  /** The pattern is plain text. */
  literal?: boolean;
  /** Lines shown before and after each match. Default 0. */
  context?: number;
}

export interface GrepMatch {
  path: string;
  line: number;
  /** Cut around the match when longer than 500 characters. */
  text: string;
  before: string[];
  after: string[];
}

export interface GrepResult {
  matches: GrepMatch[];
  truncated: boolean;
  filesScanned: number;
  skippedBinary: number;
  skippedLarge: number;
  unreadable: number;
}

export interface WriteFileOptions extends CallOptions {
  /** Fail with `ALREADY_EXISTS` instead of replacing. Default false. */
  createOnly?: boolean;
  /** Create missing parent directories. Default true. */
  createParents?: boolean;
  /** Also fsync the directory, so that the name survives a power cut. Default false. */
  durable?: boolean;
}

/** The file surface that {@link NodeWorkspace} and {@link MemoryWorkspace} share, with the same errors. */
export interface WorkspaceFiles extends FsProvider {
  /** Exact text: UTF-8, or UTF-16 with a byte order mark. `BINARY_FILE`, `UNSUPPORTED_ENCODING` otherwise. */
  readFile(path: string, options?: CallOptions): Promise<string>;
  readFileBytes(path: string, options?: CallOptions): Promise<Buffer>;
  /** Numbered lines, as `read_file` shows them. */
  readPage(path: string, options?: PageOptions & CallOptions): Promise<Page>;
  /** Atomic: another reader sees the old bytes or the new ones, and a failure leaves the old ones. */
  writeFile(path: string, content: string | Uint8Array, options?: WriteFileOptions): Promise<void>;
  /** Exact replacement on bytes; everything else in the file stays as it is. */
  editFile(path: string, edit: EditOptions, options?: CallOptions): Promise<EditResult>;
  /** Edits in order, each on what the one before left; all or none. */
  multiEdit(path: string, edits: TextEdit[], options?: MultiEditOptions): Promise<MultiEditResult>;
  /** Edits of lines named by number and hash; all or none. `ANCHOR_MISMATCH` with fresh anchors when one does not hold. */
  editAtHash(path: string, edits: HashEdit[], options?: HashEditOptions & CallOptions): Promise<HashEditResult>;
  /**
   * A unified diff (git's headers included) or a `*** Begin Patch` envelope over one or many files, as `git apply` reads
   * them; all or none, unless the process is killed in between. `PATCH_INVALID`, `PATCH_CONFLICT`, and a file's own errors.
   */
  applyPatch(patch: string, options?: PatchOptions): Promise<PatchedFile[]>;
  stat(path: string, options?: CallOptions): Promise<Required<FileStat> | undefined>;
  /** Sorted by name (bytes). */
  readdir(path: string, options?: CallOptions): Promise<DirectoryEntry[]>;
  /** Recursive and idempotent. */
  mkdir(path: string, options?: CallOptions): Promise<void>;
  /** A link is removed itself. The root, and a non-empty directory without `recursive`, are refused. */
  rm(path: string, options?: CallOptions & { recursive?: boolean }): Promise<void>;
  rename(from: string, to: string, options?: CallOptions & { overwrite?: boolean }): Promise<void>;
  /** Files only, sorted. `*` stays in one directory, `**` crosses; `?`, `[abc]`, `[!abc]`, `{a,b}`. */
  glob(pattern: string, options?: GlobOptions): Promise<GlobResult>;
  /** JavaScript regular expression, per line. Off the event loop, in bounded time. */
  grep(pattern: string, options?: GrepOptions): Promise<GrepResult>;
}

// ---------------------------------------------------------------- policy

/** `'ask'` is for a person: the tools ask (`needsApproval`), a method called by your own code just runs. */
export type PolicyAction = 'allow' | 'ask' | 'deny';

export interface PolicyDecision {
  action: PolicyAction;
  /** In words a model can act on. */
  reason: string;
}

/**
 * What may be read, written and run. Without any of these options: everything inside the root, nothing outside,
 * every command. docs/policy.md tells the whole story.
 *
 * For paths it is enforced: a denied path is refused, and invisible to listings and searches, whoever calls. For
 * commands it is a lexical gate, not a sandbox: the line is read with a shell grammar and judged by its letters, and
 * what a started program does is not seen. Put a sandbox under it where that matters.
 */
export interface PolicyOptions {
  /**
   * | | write inside | read outside | write outside | shell |
   * |-|-|-|-|-|
   * | `'readonly'` | deny | deny | deny | none |
   * | `'coding'` | allow | ask | deny | ask |
   * | `'trusted'` | allow | allow | ask | allow |
   *
   * Reads inside are allowed in all. Not given: allow, deny, deny, allow (as soon as `commandRules` allow some
   * commands by name, the others ask).
   */
  mode?: 'readonly' | 'coding' | 'trusted';
  /** Patterns that may be read although the mode says otherwise. A folder outside becomes a root of its own. */
  readable?: string[];
  /** As `readable`, for reading and writing. */
  writable?: string[];
  /**
   * Off limits: judged before everything else, by the path as asked and by where links lead. A pattern is absolute
   * or starts with `~` (that path and what is below), holds a `/` (the same, relative to the root), or is a bare
   * name such as `.env*` (any part of a path, inside or outside). `*` and `?` cross `/`; `[abc]`, `[!abc]`.
   */
  deniedPaths?: string[];
  /** The first entry that matches decides; after `deniedPaths`, before grants and mode. `ops` default: both. */
  pathRules?: { pattern: string; action: PolicyAction; ops?: ('read' | 'write')[] }[];
  /**
   * The first entry whose words are the first words of the command decides; `'*'` is every command. Each command of
   * a line is judged, the strictest verdict wins. An allow rule holds only where the reading is certain and no option
   * is used that writes or runs something (`find -delete`, `git -c`), unless the rule names it.
   */
  commandRules?: { pattern: string; action: PolicyAction }[];
  /** Spelled out instead of a mode; excludes all of the above. What is left out is as without a mode. */
  policy?: {
    writeInside?: PolicyAction;
    readOutside?: PolicyAction;
    writeOutside?: PolicyAction;
    /** `'none'`: no shell tool at all. */
    shell?: PolicyAction | 'none';
    readable?: string[];
    writable?: string[];
    deniedPaths?: string[];
    pathRules?: { pattern: string; action: PolicyAction; ops?: ('read' | 'write')[] }[];
    commandRules?: { pattern: string; action: PolicyAction }[];
  };
  /** `'deny'`: nobody is there to ask, so `ask` means `deny`. Default `'prompt'`. */
  asks?: 'prompt' | 'deny';
}

/**
 * What the policy allows, for an executor that derives mounts and rules from it. Paths are real absolute paths of this
 * host unless a pattern says otherwise; how patterns are read is said at {@link PolicyOptions}. Without policy options:
 * reads and writes inside allowed, everything outside denied, commands allowed.
 */
export interface PolicySnapshot {
  /** `null`: none was given. */
  mode: 'readonly' | 'coding' | 'trusted' | null;
  /** The workspace's root. */
  root: string;
  /** Folders and files outside that may be read: `roots`, and grants without wildcards, which need not exist. */
  readable: string[];
  /** The same for writing. */
  writable: string[];
  /** `deniedPaths` as written: bare names hold at any depth. They come before everything else. */
  denied: string[];
  /** As written, `ops` filled in. The first that matches decides, after `denied`. */
  pathRules: { pattern: string; action: PolicyAction; ops: ('read' | 'write')[] }[];
  writeInside: PolicyAction;
  readOutside: PolicyAction;
  writeOutside: PolicyAction;
  shell: PolicyAction | 'none';
}

/** What {@link NodeWorkspace} and {@link MemoryWorkspace} share: files, commands and the policy over both. */
export interface Workspace extends WorkspaceFiles, ShellProvider, AsyncDisposable {
  exec(command: string | string[], options?: ExecOptions): Promise<ExecResult>;
  /** Judges a path by its name and by where links lead now. */
  decidePath(path: string, op: 'read' | 'write'): PolicyDecision;
  /** Judges a line, or an argument list that no shell reads, as it would run in `cwd`; paths in it as `decidePath` does. */
  decideCommand(command: string | string[], options?: { cwd?: string }): PolicyDecision;
  /** The `## Workspace` section for a system prompt. It promises nothing that the policy would refuse. */
  instructions(): string;
  close(): Promise<void>;
}

export interface NodeWorkspaceOptions extends PolicyOptions {
  /** An existing directory. Everything is confined to it. */
  root: string;
  /** `'inside'` (default): links are followed while the target stays inside. `'deny'`: any link is refused. */
  symlinks?: 'inside' | 'deny';
  /** Names that file tools never write, beside `.git`. */
  protect?: string[];
  /**
   * Default true: what is written reaches the disk before its name does, so that a file survives a power cut whole.
   * `false`: a write is still atomic for everybody who reads, and about twice as fast, but after a power cut or a crash
   * of the kernel the file may be empty. For trees that can be made again. A write with `durable` flushes all the same.
   */
  fsync?: boolean;
  /**
   * More directories, reached by absolute path (without `..`) and judged like the inside; where one lies in another the
   * inner one answers. Each must exist. Patches name files of `root` only.
   */
  roots?: string[];
  /** Added for every command. */
  env?: Record<string, string>;
  /** Host variables to pass on: names, or `true` for all (then every command can read your secrets). */
  inheritEnv?: string[] | true;
  /** Default `/bin/sh` (`cmd.exe` on Windows). */
  shell?: string;
  /** `false`: a `.venv` or `venv` at the root is not activated. With an `executor` that is the executor's business. */
  venv?: boolean;
  /**
   * Runs every command (`exec`, `spawn`, the shell tool) somewhere else, after policy and approval; default: on this host.
   * It is told the root, the real path of `cwd`, `env` and the policy; one that is not of kind `'host'` gets nothing of
   * the host's environment but the names in `inheritEnv`. A line runs as `sh -c` there (`shell` names another shell of the
   * sandbox). Always with a timeout (default 120,000), `killGraceMs` is the executor's own, `leftover: 'keep'` is `UNSUPPORTED`.
   * File tools and git tools stay on the host. The executor stays yours: `close()` ends what this workspace started in it, and
   * does not close it, so several workspaces may share one.
   */
  executor?: SandboxAdapter;
  limits?: {
    /** Largest file that is read whole or edited. Default 10 MiB. */
    maxFileBytes?: number;
    /** Largest content written. Default 10 MiB. */
    maxWriteBytes?: number;
  };
}

/** What this machine enforces for commands. */
export interface WorkspaceCapabilities {
  /** `'openat2'`: the kernel confines each path; `'walk'`: croft walks it with O_NOFOLLOW. Both are race-free. */
  resolver: 'openat2' | 'walk';
  /**
   * How a command's process tree is held. `'cgroup'`: nothing it starts survives, whatever it does.
   * `'subreaper'`: the same unless it kills its supervisor. `'group'`: best effort (macOS). `'none'`: no commands.
   */
  containment: 'cgroup' | 'subreaper' | 'group' | 'none';
  platform: string;
  /** Where commands run instead. Only with the option `executor`; `containment` then holds for git only. */
  executor?: {
    kind: SandboxAdapter['kind'];
    /** Whether it can keep processes in the background. */
    spawn: boolean;
  };
}

/**
 * A directory on disk. File operations act on descriptors below the root and never on a re-checked path, so that
 * no rename race leads outside. Commands run on the host as your user: confinement of paths does not apply to
 * them, and one of the same user can read this process's start environment in `/proc`.
 */
export class NodeWorkspace implements Workspace, ProcessProvider {
  /** Throws `NOT_FOUND` or `NOT_DIRECTORY` for a bad root, `INVALID_ARGUMENT` for an unknown option. */
  constructor(options: NodeWorkspaceOptions);
  /** The real absolute path. */
  readonly root: string;
  readFile(path: string, options?: CallOptions): Promise<string>;
  readFileBytes(path: string, options?: CallOptions): Promise<Buffer>;
  readPage(path: string, options?: PageOptions & CallOptions): Promise<Page>;
  writeFile(path: string, content: string | Uint8Array, options?: WriteFileOptions): Promise<void>;
  editFile(path: string, edit: EditOptions, options?: CallOptions): Promise<EditResult>;
  multiEdit(path: string, edits: TextEdit[], options?: MultiEditOptions): Promise<MultiEditResult>;
  editAtHash(path: string, edits: HashEdit[], options?: HashEditOptions & CallOptions): Promise<HashEditResult>;
  applyPatch(patch: string, options?: PatchOptions): Promise<PatchedFile[]>;
  stat(path: string, options?: CallOptions): Promise<Required<FileStat> | undefined>;
  readdir(path: string, options?: CallOptions): Promise<DirectoryEntry[]>;
  mkdir(path: string, options?: CallOptions): Promise<void>;
  rm(path: string, options?: CallOptions & { recursive?: boolean }): Promise<void>;
  rename(from: string, to: string, options?: CallOptions & { overwrite?: boolean }): Promise<void>;
  glob(pattern: string, options?: GlobOptions): Promise<GlobResult>;
  grep(pattern: string, options?: GrepOptions): Promise<GrepResult>;
  /**
   * Runs `shell -c command`, or a list without a shell. Rejects only when nothing could be started
   * (`POLICY_DENIED`, `SPAWN_FAILED`, a bad `cwd`, `CLOSED`, `INVALID_ARGUMENT`).
   */
  exec(command: string | string[], options?: ExecOptions): Promise<ExecResult>;
  /**
   * Starts a command that runs on: no timeout, stdin at its end, output kept for {@link readProcessOutput}. It ends
   * by itself, with {@link killProcess}, with `close()` and with this Node process, also when that is killed. `UNSUPPORTED`
   * with an `executor` that has no `spawn`.
   */
  spawn(command: string | string[], options?: SpawnOptions): Promise<BackgroundProcess>;
  /**
   * What it has written since the last read. Waits at most `waitMs` (default 0) for output or the end. Reading after
   * the end is no error; `PROCESS_NOT_FOUND` for an unknown id, with the known ones.
   */
  readProcessOutput(id: string, options?: CallOptions & { waitMs?: number }): Promise<ProcessOutput>;
  /** Ends it and everything it started; returns its last output. Idempotent. */
  killProcess(id: string): Promise<ProcessOutput>;
  /** In order of their start; takes no output. Ended ones stay listed (the newest 256 of those that were read). */
  backgroundProcesses(): BackgroundProcess[];
  /** A paragraph for the model's next turn: what runs, and each end until it has been read once. */
  statusReminder(): string | undefined;
  decidePath(path: string, op: 'read' | 'write'): PolicyDecision;
  decideCommand(command: string | string[], options?: { cwd?: string }): PolicyDecision;
  instructions(): string;
  capabilities(): WorkspaceCapabilities;
  /** Ends every process of this workspace; later calls fail with `CLOSED`. Idempotent. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface MemoryCommand {
  command: string;
  cwd: string;
  env: Record<string, string>;
  timeoutMs?: number;
}

export interface MemoryWorkspaceOptions extends PolicyOptions {
  files?: Record<string, string | Uint8Array>;
  /** Names that file tools never write, beside `.git`. */
  protect?: string[];
  /** Answers commands. Default: exit code 127. Missing fields are empty output and exit code 0. */
  exec?: (command: string, options: ExecOptions) => Partial<ExecResult> | Promise<Partial<ExecResult>>;
  limits?: NodeWorkspaceOptions['limits'];
}

/** The same tree in memory, for tests: same paths, same errors, answers without a thread hop. */
export class MemoryWorkspace implements Workspace {
  constructor(options?: MemoryWorkspaceOptions);
  /** Every command received, in order. */
  readonly commands: MemoryCommand[];
  /** Every file by path; bytes that are not UTF-8 text come as a Buffer. */
  snapshot(): Record<string, string | Buffer>;
  readFile(path: string, options?: CallOptions): Promise<string>;
  readFileBytes(path: string, options?: CallOptions): Promise<Buffer>;
  readPage(path: string, options?: PageOptions & CallOptions): Promise<Page>;
  writeFile(path: string, content: string | Uint8Array, options?: WriteFileOptions): Promise<void>;
  editFile(path: string, edit: EditOptions, options?: CallOptions): Promise<EditResult>;
  multiEdit(path: string, edits: TextEdit[], options?: MultiEditOptions): Promise<MultiEditResult>;
  editAtHash(path: string, edits: HashEdit[], options?: HashEditOptions & CallOptions): Promise<HashEditResult>;
  applyPatch(patch: string, options?: PatchOptions): Promise<PatchedFile[]>;
  stat(path: string, options?: CallOptions): Promise<Required<FileStat> | undefined>;
  readdir(path: string, options?: CallOptions): Promise<DirectoryEntry[]>;
  mkdir(path: string, options?: CallOptions): Promise<void>;
  rm(path: string, options?: CallOptions & { recursive?: boolean }): Promise<void>;
  rename(from: string, to: string, options?: CallOptions & { overwrite?: boolean }): Promise<void>;
  glob(pattern: string, options?: GlobOptions): Promise<GlobResult>;
  grep(pattern: string, options?: GrepOptions): Promise<GrepResult>;
  exec(command: string | string[], options?: ExecOptions): Promise<ExecResult>;
  decidePath(path: string, op: 'read' | 'write'): PolicyDecision;
  decideCommand(command: string | string[], options?: { cwd?: string }): PolicyDecision;
  instructions(): string;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

// ---------------------------------------------------------------- text

/** A numbered page of `text`, as `read_file` shows it. */
export function formatPage(text: string, options?: PageOptions): Page;

/** Exact replacement in a string, with the errors of `edit_file`. */
export function applyEdit(text: string, edit: EditOptions): EditResult & { text: string };

/** Several exact replacements in a string, as `multi_edit` makes them. */
export function applyEdits(text: string, edits: TextEdit[], options?: Pick<EditOptions, 'lineEndings'>): MultiEditResult & { text: string };

/** Edits of lines named by number and hash in a string, as `edit_at_hash` makes them. */
export function applyHashEdits(text: string, edits: HashEdit[], options?: HashEditOptions): HashEditResult & { text: string };

/**
 * The new text after a V4A diff without its envelope, as `Editor` operations of the OpenAI Agents SDK carry it: changes of
 * `text`, or with `undefined` a new file whose lines all begin with `+`. `PATCH_INVALID`, `PATCH_CONFLICT`; docs/patches.md.
 */
export function applyV4aDiff(text: string | undefined, diff: string): string;

/** Lower-case SHA-256 hex of a line without its ending. */
export function hashLine(line: string): string;

/** Head and tail of `text` within `maxChars`, a marker in the middle that says how much was left out. */
export function clipText(text: string, maxChars: number): string;

/** What a person would have seen: escape sequences removed, carriage-return progress collapsed to its last state. */
export function stripAnsi(text: string): string;

// ---------------------------------------------------------------- tools

export interface ToolCallOptions extends CallOptions {
  toolCallId?: string;
}

/** A plain tool object. `execute` throws `WorkspaceError` on failure; adapters turn it into what their SDK expects. */
export interface Tool<Input = any, Output = unknown> {
  name: string;
  description: string;
  /** zod 4: Standard Schema and JSON Schema both work. */
  inputSchema: z.ZodType<Input>;
  readOnly: boolean;
  /** May run beside other calls of the same turn. */
  parallel: boolean;
  needsApproval(input: Input): boolean | Promise<boolean>;
  execute(input: Input, options?: ToolCallOptions): Promise<Output>;
}

/** Tools that `include` adds; see {@link FsToolsOptions}. */
export type FsExtraToolName = 'multi_edit' | 'edit_at_hash' | 'apply_patch' | 'rename' | 'remove' | 'view_image';

export type FsToolName = 'read_file' | 'write_file' | 'edit_file' | 'list_dir' | 'glob' | 'grep' | FsExtraToolName;

export interface FsToolsOptions {
  /** Only `read_file`, `list_dir`, `glob` and `grep`, and `view_image` if included. Default false. */
  readOnly?: boolean;
  /**
   * More tools: `multi_edit(path, edits)`, `edit_at_hash(path, line_number, hash, new_content)` or `(path, edits)`,
   * `apply_patch(patch, fuzz?)`, `rename(from, to, overwrite?)`, `remove(path, recursive?)`, `view_image(path)`, which
   * returns `{ type: 'image', mediaType, data }` with base64 of a png, jpeg, gif or webp of at most 5 MB. Over a provider
   * that is no croft workspace, `apply_patch`, `rename` and `view_image` are `UNSUPPORTED`.
   */
  include?: FsExtraToolName[];
  /**
   * `true`: an edit, overwrite or patch of a file whose content changed since these tools last read it is refused with
   * `STALE`. The content decides, not the time. A file they never read is not checked, nor are `rename` and `remove`.
   * Default false.
   */
  staleCheck?: boolean;
  /** `true`: `read_file` shows lines as `L{n}:{hash}:{text}`, the anchors of `edit_at_hash`. Default false. */
  hashLines?: boolean;
  /** Digits of those hashes, 8 to 64. Default 64. */
  hashLength?: number;
  /** Per tool: a boolean, or a predicate over the input. Default: what the workspace's policy asks about. */
  needsApproval?: Partial<Record<FsToolName, boolean | ((input: any) => boolean | Promise<boolean>)>>;
  /** Default 2000. */
  maxReadLines?: number;
  /** Characters a tool returns per call. Default 50,000. */
  maxOutputChars?: number;
  /** Paths, matches or entries. Default 200. */
  maxResults?: number;
  /** Default 20,000. */
  maxFilesScanned?: number;
  /** Directory names `glob`, `grep` and recursive listing skip. Default `['.git', 'node_modules']`. */
  ignore?: string[];
  /** Honour `.gitignore`. Default true. */
  gitignore?: boolean;
  lineEndings?: 'preserve' | 'strict';
  /** Larger files are refused by `read_file`. Default 10 MiB. */
  maxFileBytes?: number;
  /** Default 10 MiB. */
  maxWriteBytes?: number;
  /** Rename tools. */
  names?: Partial<Record<FsToolName, string>>;
  /** What was allowed for the session is not asked again. */
  approvals?: Approvals;
}

/** `read_file`, `write_file`, `edit_file`, `list_dir`, `glob`, `grep` over any provider. */
export function createFsTools(fs: FsProvider, options?: FsToolsOptions): Tool[];

export interface GitToolsOptions {
  /** Only `git_status` and `git_diff`. Default false. */
  readOnly?: boolean;
  /** `true`: a commit runs the repository's hooks, with the rights of your user. Default false. `UNSUPPORTED` with an `executor`. */
  runHooks?: boolean;
  /** For each run of git, of which a tool call needs up to twelve. Default 15,000. */
  timeoutMs?: number;
  /** Characters of a diff; head and tail are kept. Default 50,000. */
  maxOutputChars?: number;
  /** Per tool: a boolean, or a predicate over the input. Default: what the policy asks about of the paths that are named. */
  needsApproval?: Partial<Record<'git_status' | 'git_diff' | 'git_commit', boolean | ((input: any) => boolean | Promise<boolean>)>>;
}

/** Workspace-relative paths, whole whatever they hold. Submodules are not looked into. */
export interface GitStatus {
  /** `null` when HEAD is detached. */
  branch: string | null;
  staged: string[];
  unstaged: string[];
  /** File by file; a nested repository ends with `/`. */
  untracked: string[];
  conflicted: string[];
}

export interface GitCommitResult {
  commit_hash: string;
  message: string;
  /** Says when the repository has hooks that were not run. */
  note?: string;
}

/**
 * `git_status()` → {@link GitStatus}, `git_diff(path?, staged?)` → text, `git_commit(message, files?)` →
 * {@link GitCommitResult}, on the repository in the workspace's root. `.git` must be a directory there: a worktree's or
 * submodule's `.git` file is refused. Nothing that the repository configures is run: fsmonitor, filters, external diff,
 * textconv, signing, pager, editor, hooks (see `runHooks`); no network; the host's GIT_* variables do not count. A file that
 * needs a filter (Git LFS, git-crypt) may show as changed and is not committed by name. What the policy denies to read is
 * in no status and no diff, is left out of a commit of a directory, and refuses a commit (`POLICY_DENIED`) that names it, or
 * of an index that holds a change of it. Other failures are `GIT_FAILED` and say what to do. Throws `UNSUPPORTED` for anything but a {@link NodeWorkspace}.
 */
export function createGitTools(workspace: NodeWorkspace, options?: GitToolsOptions): Tool[];

export interface ShellToolOptions {
  /** Default: what the workspace's policy asks about; without a policy every command waits for a human. */
  needsApproval?: boolean | ((command: string) => boolean | Promise<boolean>);
  /**
   * When set, only matching commands run. A string matches the exact command or command + space + rest, and then
   * no shell operator may occur; a RegExp is tested against the whole line: anchor it.
   */
  allow?: (string | RegExp)[];
  /**
   * Refused before approval is asked. A string is compared with the first words of each command in the line, wrappers
   * such as `env` and `sh -c` looked through; a RegExp is tested against the whole line. A lexical gate, not a sandbox.
   */
  deny?: (string | RegExp)[];
  /** Default 120,000. */
  defaultTimeoutMs?: number;
  /** A larger `timeout_ms` is lowered to this. Default 600,000. */
  maxTimeoutMs?: number;
  /** Characters per stream; head and tail are kept. Default 30,000. */
  maxOutputChars?: number;
  /** Workspace-relative. */
  cwd?: string;
  env?: Record<string, string>;
  /** Default `'shell'`. */
  name?: string;
  /** Remove escape sequences from what the model reads. Default true. */
  stripAnsi?: boolean;
  /** Adds the argument `background`; offer {@link createProcessTools} beside it. Default false. */
  background?: boolean;
  /** What was allowed for the session is not asked again. */
  approvals?: Approvals;
}

export interface ShellToolResult {
  exitCode: number;
  stdout: string;
  stderr: string;
  timedOut?: true;
  aborted?: true;
  note?: string;
}

export interface ShellToolInput {
  command: string;
  timeout_ms?: number | undefined;
  cwd?: string | undefined;
  description?: string | undefined;
  /** Only with the option `background`. */
  background?: boolean | undefined;
}

/** One tool that runs commands in `shell`. */
/** What the shell tool answers when `background` was set. */
export interface ShellToolStarted {
  processId: string;
  pid: number;
  note: string;
}

export function createShellTool(
  shell: ShellProvider & ProcessProvider,
  options: ShellToolOptions & { background: true },
): Tool<ShellToolInput, ShellToolResult | ShellToolStarted>;
export function createShellTool(shell: ShellProvider, options?: ShellToolOptions): Tool<ShellToolInput, ShellToolResult>;

export interface ProcessToolsOptions {
  /** A larger `wait_ms` is lowered to this. Default 60,000. */
  maxWaitMs?: number;
  /** Remove escape sequences from what the model reads. Default true. */
  stripAnsi?: boolean;
}

export interface ProcessToolInput {
  process_id: string;
  /** `read_process_output` only. */
  wait_ms?: number | undefined;
}

export interface ProcessToolResult {
  status: ProcessStatus;
  exitCode?: number;
  output: string;
  note?: string;
}

/** `read_process_output(process_id, wait_ms?)` and `kill_process(process_id)`, for a shell tool with `background`. */
export function createProcessTools(processes: ProcessProvider, options?: ProcessToolsOptions): Tool<ProcessToolInput, ProcessToolResult>[];

export interface WorkspaceToolsOptions {
  fs?: FsToolsOptions;
  /** `false`: no shell tool. */
  shell?: ShellToolOptions | false;
  /** For all tools. */
  approvals?: Approvals;
}

/** Every tool the policy allows: no writing tools and no shell in `readonly`. Each asks where the policy asks. */
export function createWorkspaceTools(workspace: Workspace, options?: WorkspaceToolsOptions): Tool[];

export interface ApprovalRequest {
  /** The tool's name. */
  tool: string;
  /**
   * The first words of commands: `npm test` covers `npm test -- x`, but no line with another command in it, no path the
   * policy would ask about, no option that writes or runs something. With `exact`, this line and no other.
   */
  command?: string;
  /** This path; with a final `/` everything below it. A link that leads elsewhere is not covered. */
  path?: string;
  exact?: boolean;
}

export interface ApprovalGrant extends Readonly<ApprovalRequest> {
  readonly id: string;
  readonly exact: boolean;
}

/** "Allow for this session". It lifts `ask` and never `deny`. */
export interface Approvals {
  allow(request: ApprovalRequest): ApprovalGrant;
  list(): ApprovalGrant[];
  /** False for an unknown id. */
  revoke(id: string): boolean;
  clear(): void;
}

/** An empty memory of approvals; hand it to the tools. */
export function createApprovals(): Approvals;

// ---------------------------------------------------------------- credential broker

/** What a header function is told about the request that needs its value. */
export interface HeaderContext {
  /** The header to supply, lower-case. */
  header: string;
  host: string;
  port: number;
  method: string;
  /** With the query, as it will be sent. */
  path: string;
  /** Aborted when the client left or the function's time is up. */
  signal: AbortSignal;
}

/**
 * Supplies a header value for one request. If it throws, rejects, takes longer than `timeouts.functionMs` or gives
 * anything but a string of 1 to 16,384 bytes of printable ASCII, the client gets 502 with a fixed text and the
 * upstream is not contacted.
 */
export type HeaderFunction = (context: HeaderContext) => string | Promise<string>;

export type BrokerHeaders = Record<string, string | HeaderFunction>;

export interface BrokerRule {
  headers: BrokerHeaders;
  /**
   * `true`: inject over plain HTTP to public addresses too. Default `false`: such a request gets 403, because the
   * credential would cross the network in clear text. Loopback and `allowPrivate` addresses need no permission.
   */
  cleartext?: boolean;
  /** Ports beside the broker's. */
  ports?: number[];
  /** Overrides the broker's `scrub`. */
  scrub?: boolean;
}

export interface BrokerTimeouts {
  /** A request head, from its first byte; then 408. Default 10,000. */
  headerMs?: number;
  /** Name, TCP and TLS of one upstream connection; then 504. Default 10,000. */
  connectMs?: number;
  /** A header function; then 502. Default 10,000. */
  functionMs?: number;
  /** From the request to the head of its answer; then 504. Default 300,000. A body may take any time. */
  responseMs?: number;
  /** No byte of a body or a tunnel moves; then the connection is closed. Default 300,000. */
  idleMs?: number;
  /** Between two requests of a client connection. Default 60,000. */
  keepAliveMs?: number;
  /** One side of a tunnel has ended and the other says nothing. Default 60,000. */
  halfCloseMs?: number;
  /** An unused upstream connection. Default 60,000. */
  poolIdleMs?: number;
}

export interface BrokerLimits {
  /** Request head; then 431. Default 65,536. (At most 100 header lines.) */
  maxHeadBytes?: number;
  /** Request target; then 414. Default 16,384. */
  maxTargetBytes?: number;
  /** Open client connections of a listener, tunnels included; then 503. Default 8,192. */
  maxConnections?: number;
  /** The same per peer address. Default 8,192. */
  maxConnectionsPerPeer?: number;
  /** Idle upstream connections kept per host. Default 64. */
  maxIdlePerHost?: number;
}

export interface CredentialBrokerOptions {
  /**
   * Hosts to the headers they get: `{ 'api.github.com': { authorization: () => `Bearer ${token}` } }`. A host is a name,
   * `*.suffix` (any depth below, never the suffix itself) or an address, each with or without `:port`. The most specific
   * rule wins. On such a host the client's own `Authorization` and every header of the rule are removed first.
   */
  rules?: Record<string, BrokerHeaders | BrokerRule>;
  /** More hosts the broker's own listener reaches, without headers. Written like rule hosts. */
  allow?: string[];
  /**
   * Names, `*.suffix`, addresses or CIDRs that may be (or lead to) loopback, private and other special addresses.
   * Cloud metadata addresses open only when listed one by one.
   */
  allowPrivate?: string[];
  /** Ports beside 80 and 443, for hosts without a port of their own. */
  ports?: number[];
  /** Address to listen on. Default `127.0.0.1`. Any other than loopback needs `clients`. */
  host?: string;
  /** Default 0: any free port. */
  port?: number;
  /** CIDRs this listener serves; other peers are dropped before a byte is read. */
  clients?: string | string[];
  /** `true`: the URLs carry a random credential, and nothing is served without it. Default `false`. */
  auth?: boolean;
  /** PEM certificates to trust beside the platform's. */
  ca?: string | string[];
  /**
   * The TLS server name in a tunnel. `'match'` (default): a name that differs from the CONNECT host ends the tunnel; no
   * name and no TLS pass. `'strict'`: only the same name passes. `'off'`: not looked at.
   */
  sni?: 'match' | 'strict' | 'off';
  /**
   * `true`: an injected value that the upstream echoes (raw, percent-encoded, JSON, base64) is masked with `*`, and
   * compressed answers are not asked for. Default `false`. Best effort: an upstream can always disguise it.
   */
  scrub?: boolean;
  /** `true`: redirects within the same host lead back to the path form. Default `false`. */
  rewriteLocation?: boolean;
  timeouts?: BrokerTimeouts;
  limits?: BrokerLimits;
  /**
   * `http://[user:password@]host[:port]`, or `'env'` for the host's own HTTPS_PROXY. Hosts in `allowPrivate` are reached
   * directly. The proxy looks names up, so only literal addresses can be checked here.
   */
  upstreamProxy?: string;
  /** Told of every request, tunnel and refused connection when it ends. Never holds a header value or a query. */
  onRequest?: (event: BrokerEvent) => void;
  /** Told what a header function threw. It may hold the secret: the broker itself shows it nowhere. */
  onError?: (error: unknown, context: { host: string; header: string }) => void;
  /** Looks a name up instead of the host. Its addresses are checked like any others. */
  resolve?: (host: string) => string[] | Promise<string[]>;
}

export interface BrokerEvent {
  /** `'connection'`: refused before any request. */
  kind: 'request' | 'tunnel' | 'upgrade' | 'connection';
  /** When it arrived, milliseconds since 1970. */
  time: number;
  /** The listener's address, as a URL. */
  listener: string;
  method: string;
  host?: string;
  port?: number;
  /** Without the query. */
  path?: string;
  verdict: 'allow' | 'deny';
  /** Whether headers were added. */
  injected: boolean;
  /** Why it was refused or broke off; the same word as in `x-broker-error`. docs/broker.md lists them. */
  reason?: string;
  /** 0 when there was no answer. */
  status: number;
  /** Body or tunnel bytes from the client. */
  bytesIn: number;
  /** Body or tunnel bytes to the client. */
  bytesOut: number;
  ms: number;
}

export interface BrokerStats {
  /** Open now. */
  connections: number;
  tunnels: number;
  activeRequests: number;
  /** So far. */
  requests: number;
  /** Before an upstream was contacted. */
  refused: number;
  /** Afterwards. */
  failed: number;
  bytesIn: number;
  bytesOut: number;
  upstreamConnections: number;
}

export interface BrokerListener extends AsyncDisposable {
  /** The proxy URL. */
  readonly url: string;
  /** `HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY` (the listener's own address) and their lower-case forms. */
  readonly env: Record<string, string>;
  /** Where `https://<host>` begins in the path form: append `/path`. */
  baseUrl(host: string): string;
  /** Stops accepting; requests in progress get `drainMs` (default 0), then every socket is destroyed. Idempotent. */
  close(options?: { drainMs?: number }): Promise<void>;
}

export interface BrokerListenOptions {
  /** IP address of this machine to listen on. */
  host: string;
  port?: number;
  /** CIDRs to serve; needed unless `host` is a loopback address. The listener's own address is no client unless listed by itself. */
  clients?: string | string[];
  /** Hosts beside those of the rules. The broker's own `allow` does not count here. */
  allow?: string[];
  auth?: boolean;
}

export interface BrokerAdoptOptions {
  /** A listening TCP socket, which the broker owns (and closes) from now on. */
  fd: number;
  allow?: string[];
  auth?: boolean;
}

/** A proxy that adds credentials, so that a command can use an API without holding its token. */
export interface CredentialBroker extends BrokerListener {
  /** Listens on another address, for one network. */
  listen(options: BrokerListenOptions): Promise<BrokerListener>;
  /** Serves on a socket that listens already, such as one made inside a container. Whoever reaches it is served. */
  adopt(options: BrokerAdoptOptions): Promise<BrokerListener>;
  stats(): BrokerStats;
}

/** Starts a broker. It does not keep Node alive. Fails with `INVALID_ARGUMENT` or `BROKER_FAILED`. */
export function createCredentialBroker(options: CredentialBrokerOptions): Promise<CredentialBroker>;

// ---------------------------------------------------------------- sandboxes

export interface SandboxRunOptions extends CallOptions {
  /** The program, looked up on the sandbox's own `PATH`. */
  command: string;
  args?: string[];
  /** Absolute; the same path on the host and inside. */
  cwd: string;
  /** All that the command gets from you; nothing of the host's environment is added in a container. */
  env?: Record<string, string>;
  /** Written to stdin, which is at end of file otherwise. */
  input?: string | Uint8Array;
  /** Counts from the command's start, not from that of a container. Default: the sandbox's. */
  timeoutMs?: number;
  /** Per stream, default 1 MiB, marker included; head and tail are kept. */
  maxOutputBytes?: number;
  onOutput?: ExecOptions['onOutput'];
  /** The directory that is made visible, absolute; `cwd` lies in it. Default: `cwd` itself. */
  root?: string;
  /** As a workspace's `executor`: what its policy allows. croft's own sandboxes mount `root`, and nothing for it. */
  policy?: PolicySnapshot;
}

/** A command that runs on: no timeout, stdin at its end. */
export interface SandboxSpawnOptions extends Pick<SandboxRunOptions, 'command' | 'args' | 'cwd' | 'env' | 'root' | 'policy'> {
  /** Ends the start, not what runs: that is `kill`'s. An aborted start rejects, with nothing left. */
  signal?: AbortSignal | undefined;
  /** Called with each piece of decoded output as it arrives; the command may be held up by a slow listener. */
  onOutput: NonNullable<ExecOptions['onOutput']>;
}

export interface SandboxExit {
  /** 128 + n when it died of signal n. */
  exitCode: number;
  signal?: string;
  oomKilled?: boolean;
  /** For the model: which limit of the sandbox explains the end. */
  hint?: string;
}

/** What {@link SandboxAdapter.spawn} started. It ends by itself, by `kill`, with the adapter's `close()` and with this process. */
export interface SandboxProcess {
  /** As the sandbox counts. */
  readonly pid?: number;
  /** Settles after the last output, when nothing of it is left. Waiting for it does not keep Node alive. */
  readonly exited: Promise<SandboxExit>;
  /** Ends it and everything it started; resolves when that is gone. Idempotent. */
  kill(): Promise<void>;
}

/** As {@link ExecResult}. Resolves for a non-zero exit, a timeout and an abort; rejects when nothing was started. */
export interface SandboxResult extends ExecResult {
  /** A process was killed because the sandbox's memory limit was reached, and not by anybody. */
  oomKilled?: boolean;
  /** For the model: which limit of the sandbox explains the result. */
  hint?: string;
}

/** One method makes anything a sandbox: a container, a remote machine. `croft/testing` has tests for yours. */
export interface SandboxAdapter {
  /** `'host'`: no isolation; commands get the base environment of {@link NodeWorkspaceOptions}. */
  readonly kind: 'host' | 'container' | 'os';
  run(options: SandboxRunOptions): Promise<SandboxResult>;
  /** Resolves once the command runs; rejects when nothing was started. Without it there are no background processes. */
  spawn?(options: SandboxSpawnOptions): Promise<SandboxProcess>;
  close?(): Promise<void>;
}

export interface SandboxShellOptions {
  /** Absolute. Commands see this directory; the `cwd` of a call is relative to it. */
  cwd: string;
  /** For every command. */
  env?: Record<string, string>;
  /**
   * Host variables to pass on by name. `true` means all of them on the host, and none in a container, which never
   * gets the host's `PATH` or `HOME`.
   */
  inheritEnv?: string[] | boolean;
}

/** A {@link ShellProvider} over a sandbox: each command line runs as `sh -c "<command>"` there. */
export class SandboxShell implements ShellProvider, AsyncDisposable {
  constructor(adapter: SandboxAdapter, options: SandboxShellOptions);
  /**
   * As {@link NodeWorkspace.exec}. Always with a timeout (default 120,000): an adapter that ignores `signal` is not
   * waited for longer than 2 s, and its command ends with the timeout.
   */
  exec(command: string | string[], options?: ExecOptions): Promise<SandboxResult>;
  /** Closes the adapter too. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** No sandbox: commands run on the host as your user, supervised as those of {@link NodeWorkspace}. */
export class NoopSandbox implements SandboxAdapter, AsyncDisposable {
  readonly kind: 'host';
  run(options: SandboxRunOptions): Promise<SandboxResult>;
  spawn(options: SandboxSpawnOptions): Promise<SandboxProcess>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface SubprocessSandboxOptions {
  /** On this machine already: nothing is pulled. */
  image: string;
  /**
   * `'none'` (default): no network. `'default'`: the engine's, unrestricted. `{ allow }` with a `broker`: these hosts
   * (`name`, `*.suffix`, with or without `:port`) and those of the broker's rules, through it, and nothing else;
   * without a `broker`: no network. Checked when the sandbox is made.
   */
  network?: 'none' | 'default' | { allow: string[] };
  /** Of `createCredentialBroker()`. Commands find it in `HTTP_PROXY` and `HTTPS_PROXY`; no token enters a container. */
  broker?: CredentialBroker;
  /**
   * How an allow list is kept. `'socket'` (default): no network; the proxy's listener is made inside the container and
   * handed to the broker, so that nothing but the broker is reachable. `'network'`: an internal network with the broker
   * on its gateway; services of the host that listen on all addresses are reachable through it too.
   */
  egress?: 'socket' | 'network';
  /** Of `egress: 'network'`. One that exists is used if it is internal. Default `lousho-egress-<random>`. */
  networkName?: string;
  /** The engine's socket. Default: `DOCKER_HOST`, the current docker context, then the known places. */
  socketPath?: string;
  /** `'host'`: your own uid and gid, with a home and a `/tmp` of its own. Else as Docker's. Default: the image's. */
  user?: 'host' | (string & {});
  /** Bytes, or `'512m'`, `'2g'`; at least 6 MiB, no swap on top. Default: no limit. */
  memory?: number | string;
  /** Processors, such as 0.5. Default: no limit. */
  cpus?: number;
  /** Processes and threads. Default 512. */
  pidsLimit?: number;
  /** Only `cwd`, `/tmp` and `tmpfs` are writable. Default false. */
  readOnlyRoot?: boolean;
  /** Directories in memory: paths, or paths with mount options (`{ '/cache': 'size=64m' }`). */
  tmpfs?: string[] | Record<string, string>;
  /** Of a command that gives none. Default 120,000. */
  timeoutMs?: number;
  /**
   * `'command'` (default): each command in a new container. `'pool'`: the same, with containers started ahead of need.
   * `'session'`: one container per directory until `close()`; commands share its files and see each other's.
   */
  reuse?: 'command' | 'pool' | 'session';
  /**
   * How commands and output travel. `'socket'` (default on Linux): over a mounted socket to an init of croft's, which
   * also ends the container when this process dies. `'attach'`: through the engine, for one in a virtual machine.
   */
  transport?: 'socket' | 'attach';
  /** On every container and network. */
  labels?: Record<string, string>;
}

/**
 * Commands in Docker containers. Only the directory of the command is mounted, at the same path. No capabilities, no new
 * privileges, a process limit, no core dumps, no engine socket, private IPC, no host environment. A timeout or an abort
 * removes the container; so does the end of this process, also by SIGKILL. `SANDBOX_UNAVAILABLE` says what is missing
 * (no engine, not running, no permission, no such image), `LOUSHO_SANDBOX_EGRESS_UNSUPPORTED` that an allow list cannot be
 * kept here.
 */
export class SubprocessSandbox implements SandboxAdapter, AsyncDisposable {
  /** Throws `INVALID_ARGUMENT` for a wrong option. The engine is looked for at the first command. */
  constructor(options: SubprocessSandboxOptions);
  readonly kind: 'container';
  /** As checked: names in lower case and ASCII. */
  readonly network: 'none' | 'default' | { allow: string[] };
  /**
   * `cwd` (or `root`) must exist and be a project's directory: system directories and home directories are refused.
   */
  run(options: SandboxRunOptions): Promise<SandboxResult>;
  /**
   * In a container of its own, which lives as long as the command; with `reuse: 'session'` in that of the session, where
   * other commands reach its ports. `SANDBOX_UNAVAILABLE` with `transport: 'attach'`.
   */
  spawn(options: SandboxSpawnOptions): Promise<SandboxProcess>;
  /** Ends every command; when it returns, no container and no network of this sandbox is left. Idempotent. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
