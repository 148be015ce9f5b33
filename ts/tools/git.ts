/** The git tools: status, diff and commit of the repository in a workspace's root. What runs git is native. */
import { z } from 'zod';
import { checkOptions } from '../check.js';
import { PermissionDeniedError, WorkspaceError } from '../errors.js';
import { policyOf } from '../policy.js';
import type { GitCommitResult, GitStatus, GitToolsOptions, Tool, WorkspaceFiles } from '../providers.js';
import { NodeWorkspace } from '../workspace.js';
import { defineTool, type Approval } from './tool.js';

const approval = z.custom<Approval<never>>((value) => typeof value === 'boolean' || typeof value === 'function', 'expected a boolean or a function');
const perTool = <T extends z.ZodType>(value: T) => z.strictObject({ git_status: value.optional(), git_diff: value.optional(), git_commit: value.optional() });

const optionsSchema = z.strictObject({
  readOnly: z.boolean().default(false),
  runHooks: z.boolean().default(false),
  timeoutMs: z.number().int().min(1).default(15_000),
  maxOutputChars: z.number().int().min(200).default(50_000),
  needsApproval: perTool(approval).default({}),
});

type GitSettings = z.output<typeof optionsSchema>;

export function createGitTools(workspace: WorkspaceFiles, options: GitToolsOptions = {}): Tool[] {
  if (!(workspace instanceof NodeWorkspace)) {
    throw new WorkspaceError('createGitTools needs a NodeWorkspace: git works on a directory on disk', 'UNSUPPORTED');
  }
  const settings = checkOptions('createGitTools', optionsSchema, options);
  const tools = [statusTool(workspace, settings), diffTool(workspace, settings)];
  const readOnly = settings.readOnly || policyOf(workspace)?.native.offersWrites === false;
  return readOnly ? tools : [...tools, commitTool(workspace, settings)];
}

function statusTool(workspace: NodeWorkspace, settings: GitSettings): Tool {
  return defineTool<Record<string, never>, GitStatus>({
    name: 'git_status',
    description: 'Shows the branch and the files that are staged, changed but not staged, untracked, and conflicted.',
    readOnly: true,
    approval: settings.needsApproval.git_status as Approval<unknown>,
    schema: z.object({}) as unknown as z.ZodType<Record<string, never>>,
    run: async (_input, { signal }) => visible(workspace, await workspace.host.gitStatus(settings, signal)),
  });
}

function diffTool(workspace: NodeWorkspace, settings: GitSettings): Tool {
  return defineTool({
    name: 'git_diff',
    description: 'Shows what changed: in the working tree against the index, or with staged what the next commit would hold.',
    readOnly: true,
    approval: settings.needsApproval.git_diff as Approval<unknown>,
    schema: z.object({
      path: z.string().nullish().describe('Only this file or directory, workspace-relative'),
      staged: z.boolean().nullish().describe('Default false'),
    }),
    run: async ({ path, staged }, { signal }) => {
      const diff = await visibleDiff(workspace, path ?? null, staged === true, settings, signal);
      return diff === '' ? '[no differences]' : diff;
    },
  });
}

function commitTool(workspace: NodeWorkspace, settings: GitSettings): Tool {
  return defineTool({
    name: 'git_commit',
    description:
      'Commits what is staged, or with files only those, as they are now, new and deleted ones included; the rest of what is staged stays staged.',
    readOnly: false,
    approval: settings.needsApproval.git_commit as Approval<unknown>,
    schema: z.object({
      message: z.string().describe('The commit message, as it is to be'),
      files: z.array(z.string()).nullish().describe('Files or directories to commit, workspace-relative'),
    }),
    run: async ({ message, files }, { signal }): Promise<GitCommitResult> => {
      for (const file of files ?? []) refuseDenied(workspace, file);
      return await workspace.host.gitCommit(message, files ?? null, settings, signal);
    },
  });
}

/** git reads the files itself, so what the policy denies is taken out of what it shows. */
function isDenied(workspace: NodeWorkspace, path: string): boolean {
  return policyOf(workspace)?.decidePath(path, 'read').action === 'deny';
}

function refuseDenied(workspace: NodeWorkspace, path: string): void {
  const decision = policyOf(workspace)?.decidePath(path, 'read');
  if (decision?.action === 'deny') throw new PermissionDeniedError(decision.reason, { path });
}

function visible(workspace: NodeWorkspace, status: GitStatus): GitStatus {
  const shown = (paths: string[]): string[] => paths.filter((path) => !isDenied(workspace, path));
  const { branch, staged, unstaged, untracked, conflicted } = status;
  return { branch, staged: shown(staged), unstaged: shown(unstaged), untracked: shown(untracked), conflicted: shown(conflicted) };
}

/** File by file as soon as something that changed is denied. */
async function visibleDiff(workspace: NodeWorkspace, path: string | null, staged: boolean, settings: GitSettings, signal: AbortSignal | undefined): Promise<string> {
  if (path !== null) refuseDenied(workspace, path);
  const diff = async (path: string | null): Promise<string> => await workspace.host.gitDiff(path, staged, settings, signal);
  const policy = policyOf(workspace);
  if (!policy) return await diff(path);
  const status = await workspace.host.gitStatus(settings, signal);
  const all = [...new Set([...(staged ? status.staged : status.unstaged), ...status.conflicted])];
  if (!all.some((changed) => isDenied(workspace, changed))) return await diff(path);
  const root = path === null ? '.' : policy.native.locate(path);
  const shown = all.filter((changed) => (root === '.' || changed === root || changed.startsWith(`${root}/`)) && !isDenied(workspace, changed));
  let text = '';
  for (const changed of shown) text += await diff(changed);
  return text;
}
