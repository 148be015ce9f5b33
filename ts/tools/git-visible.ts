/** What the policy leaves of a repository. git reads the index and the files itself, so the gate of the tree does not
 * stand between: each answer is made from the paths that git says have changed. What runs git is left to native code. */
import { PermissionDeniedError, WorkspaceError } from '../errors.js';
import { policyOf, type WorkspacePolicy } from '../policy.js';
import type { GitCommitResult, GitStatus } from '../providers.js';
import type { NodeWorkspace } from '../workspace.js';

type HostGit = NodeWorkspace['host'];
export type GitRun = Parameters<HostGit['gitStatus']>[0];

/** One call of a tool on the repository of a workspace. */
export class VisibleRepository {
  private readonly host: HostGit;
  private readonly policy: WorkspacePolicy | undefined;

  constructor(
    workspace: NodeWorkspace,
    private readonly settings: GitRun & { maxOutputChars: number },
    private readonly signal: AbortSignal | undefined,
  ) {
    this.host = workspace.host;
    this.policy = policyOf(workspace);
  }

  async status(): Promise<GitStatus> {
    const { branch, staged, unstaged, untracked, conflicted } = await this.host.gitStatus(this.settings, this.signal);
    const shown = (paths: string[]): string[] => paths.filter((path) => !this.hides(path));
    return { branch, staged: shown(staged), unstaged: shown(unstaged), untracked: shown(untracked), conflicted: shown(conflicted) };
  }

  /** File by file as soon as something that changed is hidden: then no rename can name it either. */
  async diff(path: string | null, staged: boolean): Promise<string> {
    if (path !== null) this.refuseHidden(path);
    const diff = async (path: string | null): Promise<string> => await this.host.gitDiff(path, staged, this.settings, this.signal);
    if (!this.policy) return await diff(path);
    const status = await this.host.gitStatus(this.settings, this.signal);
    const { visible, hidden } = this.below(path ?? '.', [...(staged ? status.staged : status.unstaged), ...status.conflicted]);
    if (hidden.length === 0) return await diff(path);
    // A name that is now a directory with something hidden in it would show that as well.
    const shown = visible.filter((one) => !holdsSome(one, hidden));
    let text = '';
    for (const [index, changed] of shown.entries()) {
      if (text.length >= this.settings.maxOutputChars) return `${text}[${shown.length - index} more changed files were left out: give a path]`;
      text += await diff(changed);
    }
    return text;
  }

  /** Nothing hidden gets into a commit: what is in a named directory is left out, a whole index that holds it is refused. */
  async commit(message: string, files: string[] | null): Promise<GitCommitResult> {
    const commit = async (files: string[] | null): Promise<GitCommitResult> => await this.host.gitCommit(message, files, this.settings, this.signal);
    if (!this.policy) return await commit(files);
    for (const file of files ?? []) this.refuseHidden(file);
    const status = await this.host.gitStatus(this.settings, this.signal);
    if (this.hidden(status.conflicted).length > 0) {
      throw new PermissionDeniedError('git_commit: a path that the policy hides is unmerged: a person has to resolve it before anything is committed');
    }
    if (files !== null) return await commit(files.flatMap((file) => this.visibleIn(file, status)));
    const { length } = this.hidden(status.staged);
    if (length > 0) {
      const held = `${length} ${length === 1 ? 'change' : 'changes'} of what the policy hides`;
      throw new PermissionDeniedError(`git_commit: ${held} would be committed with the rest of the index: name the files to commit in files, or let a person unstage what is hidden`);
    }
    return await commit(null);
  }

  private visibleIn(file: string, { staged, unstaged, untracked }: GitStatus): string[] {
    const { visible, hidden } = this.below(file, [...staged, ...unstaged, ...untracked]);
    if (hidden.length === 0) return [file];
    const named = JSON.stringify(file);
    if (visible.length === 0) {
      throw new WorkspaceError(`git commit: nothing to commit in ${named}: it does not differ from the last commit, is ignored, or is not there`, 'GIT_FAILED');
    }
    if (visible.some((one) => holdsSome(one, hidden))) {
      throw new PermissionDeniedError(`git_commit: a file in ${named} has become a directory with something in it that the policy hides: name other files`, { path: file });
    }
    return visible;
  }

  /** Those of `changed` that are `path` or lie in it. */
  private below(path: string, changed: string[]): { visible: string[]; hidden: string[] } {
    const root = this.policy?.native.locate(path) ?? path;
    const inside = [...new Set(changed)].filter((one) => root === '.' || one === root || one.startsWith(`${root}/`));
    return { visible: inside.filter((one) => !this.hides(one)), hidden: this.hidden(inside) };
  }

  private hidden(paths: string[]): string[] {
    return paths.filter((path) => this.hides(path));
  }

  private hides(path: string): boolean {
    return this.policy?.decidePath(path, 'read').action === 'deny';
  }

  private refuseHidden(path: string): void {
    const decision = this.policy?.decidePath(path, 'read');
    if (decision?.action === 'deny') throw new PermissionDeniedError(decision.reason, { path });
  }
}

function holdsSome(path: string, hidden: string[]): boolean {
  return hidden.some((one) => one.startsWith(`${path}/`));
}
