/** What every file tool is made from: where the files are, the settings, a name and an approval. */
import { z } from 'zod';
import { HASH_LENGTH } from '../edits.js';
import { MAX_FILE_BYTES } from '../files.js';
import type { FsExtraToolName, FsToolName } from '../providers.js';
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
});

export type FsToolsSettings = z.output<typeof fsToolsSchema>;

export interface FsContext {
  files: ToolFiles;
  settings: FsToolsSettings;
}

export const pathSchema = z.string().describe('Workspace-relative path with / separators');

export function named<T extends FsToolName>(name: T, { settings }: FsContext) {
  return { name: settings.names[name] ?? name, approval: settings.needsApproval[name] as Approval<unknown> };
}
