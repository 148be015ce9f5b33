/** The git tools: status, diff and commit of the repository in a workspace's root. What runs git is native. */
import { z } from 'zod';
import { checkOptions } from '../check.js';
import { WorkspaceError } from '../errors.js';
import { policyOf } from '../policy.js';
import type { GitCommitResult, GitStatus, GitToolsOptions, Tool, WorkspaceFiles } from '../providers.js';
import { NodeWorkspace } from '../workspace.js';
import { VisibleRepository } from './git-visible.js';
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
  if (settings.runHooks && workspace.capabilities().executor) {
    // git itself runs on the host, and so would they: out of the sandbox that was asked for.
    throw new WorkspaceError('createGitTools: runHooks is not possible with an executor: hooks would run on the host. Run git commit in the shell instead', 'UNSUPPORTED');
  }
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
    run: async (_input, { signal }) => await new VisibleRepository(workspace, settings, signal).status(),
  });
}

function diffTool(workspace: NodeWorkspace, settings: GitSettings): Tool {
  return defineTool({
    name: 'git_diff',
    description: 'Shows what changed: in the working tree against the index, or with staged what the next commit would hold.',
    readOnly: true,
    approval: approvalOf(workspace, settings.needsApproval.git_diff, ({ path }) => (path == null ? [] : [path])),
    schema: z.object({
      path: z.string().nullish().describe('Only this file or directory, workspace-relative'),
      staged: z.boolean().nullish().describe('Default false'),
    }),
    run: async ({ path, staged }, { signal }) => {
      const diff = await new VisibleRepository(workspace, settings, signal).diff(path ?? null, staged === true);
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
    approval: approvalOf(workspace, settings.needsApproval.git_commit, ({ files }) => files ?? []),
    schema: z.object({
      message: z.string().describe('The commit message, as it is to be'),
      files: z.array(z.string()).nullish().describe('Files or directories to commit, workspace-relative'),
    }),
    run: async ({ message, files }, { signal }): Promise<GitCommitResult> =>
      await new VisibleRepository(workspace, settings, signal).commit(message, files ?? null),
  });
}

interface Named {
  path?: string | null;
  files?: string[] | null;
}

/** As given in the options; else what the policy asks about among the paths that are named. */
function approvalOf(workspace: NodeWorkspace, given: Approval<never> | undefined, pathsOf: (input: Named) => string[]): Approval<unknown> {
  const policy = policyOf(workspace);
  if (given !== undefined || !policy) return given as Approval<unknown>;
  return (input) => {
    const actions = pathsOf(input as Named).map((path) => policy.decidePath(path, 'read').action);
    return actions.includes('ask') && !actions.includes('deny');
  };
}
