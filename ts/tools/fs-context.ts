/** What every file tool is made from: where the files are, the settings, a name and an approval. */
import { z } from 'zod';
import { HASH_LENGTH } from '../edits.js';
import { MAX_FILE_BYTES } from '../files.js';
import { policyOf, type WorkspacePolicy } from '../policy.js';
import type { FsExtraToolName, FsProvider, FsToolName } from '../providers.js';
import { SessionApprovals } from './approvals.js';
import type { ToolFiles } from './source.js';
import type { Approval } from './tool.js';

const count = z.number().int().min(1);
const approval = z.custom<Approval<never>>((value) => typeof value === 'boolean' || typeof value === 'function', 'expected a boolean or a function');

export const EXTRA_TOOLS = ['multi_edit', 'edit_at_hash', 'apply_patch', 'rename', 'remove', 'view_image'] as const satisfies FsExtraToolName[];
const TOOLS = ['read_file', 'write_file', 'edit_file', 'list_dir', 'glob', 'grep', ...EXTRA_TOOLS] as const satisfies FsToolName[];

const perTool = <T extends z.ZodType>(value: T) => z.partialRecord(z.enum(TOOLS), value);

export const fsToolsSchema = z.strictObject({
  readOnly: z.boolean().default(false),
  include: z.array(z.enum(EXTRA_TOOLS)).default([]),
  needsApproval: perTool(approval).default({}),
  maxReadLines: count.default(2000),
  maxOutputChars: count.min(200).default(50_000),
  maxResults: count.default(200),
  maxFilesScanned: count.default(20_000),
  ignore: z.array(z.string()).default(['.git', 'node_modules']),
  gitignore: z.boolean().default(true),
  lineEndings: z.enum(['preserve', 'strict']).default('preserve'),
  maxFileBytes: count.default(MAX_FILE_BYTES),
  maxWriteBytes: count.default(MAX_FILE_BYTES),
  staleCheck: z.boolean().default(false),
  hashLines: z.boolean().default(false),
  hashLength: z.number().int().min(8).max(HASH_LENGTH).default(HASH_LENGTH),
  names: perTool(z.string().min(1)).default({}),
  approvals: z.instanceof(SessionApprovals, { error: 'expected what createApprovals() gives' }).optional(),
});

export type FsToolsSettings = z.output<typeof fsToolsSchema>;

export interface FsContext {
  fs: FsProvider;
  files: ToolFiles;
  settings: FsToolsSettings;
}

export const pathSchema = z.string().describe('Workspace-relative path with / separators');

export function named<T extends FsToolName>(tool: T, context: FsContext) {
  const name = context.settings.names[tool] ?? tool;
  return { name, approval: approvalOf(tool, name, context) };
}

type Op = 'read' | 'write';

/** What each tool does to its paths. */
const OPS: Record<FsToolName, readonly Op[]> = {
  read_file: ['read'],
  list_dir: ['read'],
  glob: ['read'],
  grep: ['read'],
  view_image: ['read'],
  write_file: ['write'],
  remove: ['write'],
  edit_file: ['read', 'write'],
  multi_edit: ['read', 'write'],
  edit_at_hash: ['read', 'write'],
  apply_patch: ['read', 'write'],
  rename: ['read', 'write'],
};

/** As given in the options; else what the workspace's policy asks about. A denied path is not asked about: it fails. */
function approvalOf(tool: FsToolName, name: string, { fs, settings }: FsContext): Approval<unknown> {
  const policy = policyOf(fs);
  const given = settings.needsApproval[tool] as Approval<unknown>;
  if (given === undefined && !policy) return false;
  return async (input) => {
    const paths = pathsOf(input);
    const actions = paths.flatMap((path) => actionsOf(policy, path, OPS[tool]));
    if (actions.includes('deny')) return false;
    const asks = typeof given === 'function' ? await given(input) : (given ?? actions.includes('ask'));
    return asks && !(settings.approvals && paths.every((path) => settings.approvals?.coversPath(name, path, policy)));
  };
}

function actionsOf(policy: WorkspacePolicy | undefined, path: string, ops: readonly Op[]): string[] {
  return policy ? ops.map((op) => policy.decidePath(path, op).action) : [];
}

/** Names in the headers of a unified diff and of a `*** Begin Patch` envelope. */
const PATCHED = /^(?:(?:---|\+\+\+) "?(?:[ab]\/)?|(?:rename|copy) (?:from|to) "?|\*\*\* (?:(?:Add|Update|Delete) File|Move to): )([^"\t\r\n]+)/gm;

function pathsOf(input: unknown): string[] {
  const { path, from, to, patch } = input as { path?: string | null; from?: string; to?: string; patch?: string };
  if (patch === undefined) return from === undefined || to === undefined ? [path ?? '.'] : [from, to];
  const named = [...patch.matchAll(PATCHED)].map((match) => match[1] ?? '').filter((name) => name !== '/dev/null');
  return named.length > 0 ? [...new Set(named)] : ['.'];
}
