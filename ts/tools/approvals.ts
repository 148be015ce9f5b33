/** "Allow for this session": what a person allowed once is not asked again, and nothing wider than what they saw. */
import { askingPolicy, type NativePolicy } from '#native';
import { callSync } from '../call.js';
import { checkString, invalid } from '../check.js';
import type * as api from '../providers.js';
import type { WorkspacePolicy } from '../policy.js';

export function createApprovals(): api.Approvals {
  return new SessionApprovals();
}

export class SessionApprovals implements api.Approvals {
  readonly #grants = new Map<string, api.ApprovalGrant>();
  #next = 1;

  allow(request: api.ApprovalRequest): api.ApprovalGrant {
    const { tool, command, path, exact = false } = checkRequest(request);
    const grant: api.ApprovalGrant = Object.freeze({
      id: `grant-${this.#next++}`,
      tool,
      exact,
      ...(command === undefined ? {} : { command }),
      ...(path === undefined ? {} : { path }),
    });
    this.#grants.set(grant.id, grant);
    return grant;
  }

  list(): api.ApprovalGrant[] {
    return [...this.#grants.values()];
  }

  revoke(id: string): boolean {
    return this.#grants.delete(id);
  }

  clear(): void {
    this.#grants.clear();
  }

  /** @internal Whether `command`, run in `cwd`, is within what was allowed for `tool`. */
  coversCommand(tool: string, command: string, cwd: string, policy: WorkspacePolicy | undefined): boolean {
    const grants = this.list().filter((grant) => grant.tool === tool && grant.command !== undefined);
    if (grants.some((grant) => grant.exact && grant.command === command)) return true;
    const prefixes = grants.filter(({ exact }) => !exact).map((grant) => grant.command as string);
    if (prefixes.length === 0) return false;
    const native = policy?.native ?? asking();
    return callSync(() => native.decideGranted(command, cwd, prefixes)).action === 'allow';
  }

  /** @internal Whether `path` is what was allowed, by its name and by where links lead. */
  coversPath(tool: string, path: string, policy: WorkspacePolicy | undefined): boolean {
    const native = policy?.native ?? asking();
    const asked = callSync(() => native.locate(path));
    const resolved = callSync(() => native.resolve(path)) ?? asked;
    return this.list()
      .filter((grant) => grant.tool === tool && grant.path !== undefined)
      .some(({ path: granted = '' }) => {
        const root = callSync(() => native.locate(granted));
        const covers = (place: string): boolean => place === root || (granted.endsWith('/') && (root === '.' || place.startsWith(`${root}/`)));
        return covers(asked) && covers(resolved);
      });
  }
}

let shared: NativePolicy | undefined;

/** For providers without a policy of their own: only what is plainly the allowed command passes. */
function asking(): NativePolicy {
  return (shared ??= callSync(() => askingPolicy()));
}

function checkRequest(request: api.ApprovalRequest): api.ApprovalRequest {
  const { tool, command, path, exact } = request;
  checkString('tool', tool);
  if ((command === undefined) === (path === undefined)) throw invalid('an approval is for a command or for a path: give one of the two');
  if (command !== undefined) checkString('command', command);
  if (path !== undefined) checkString('path', path);
  if (exact !== undefined && typeof exact !== 'boolean') throw invalid('exact must be a boolean');
  if (command?.trim() === '') throw invalid('command is empty: give the line, or its first words');
  if (path === '') throw invalid('path is empty: give "." for the root');
  // A prefix has to be a rule; one that could never match is refused here and not when it is needed.
  if (command !== undefined && !exact) callSync(() => asking().decideGranted('croft-approval-check', '.', [command]));
  return request;
}
