/** The shell tool: rules before approval, a bounded wait, what the model reads of the output. */
import { z } from 'zod';
import { checkOptions, checkString } from '../check.js';
import { PermissionDeniedError } from '../errors.js';
import { policyOf } from '../policy.js';
import type {
  ExecResult,
  ProcessProvider,
  SandboxResult,
  ShellProvider,
  ShellToolInput,
  ShellToolOptions,
  ShellToolResult,
  ShellToolStarted,
  Tool,
} from '../providers.js';
import { clipText, stripAnsi } from '../text.js';
import { SessionApprovals } from './approvals.js';
import { checkProvider } from './process.js';
import { checkRules } from './rules.js';
import { defineTool, type Approval } from './tool.js';

const ms = z.number().int().min(1);
const rules = z.array(z.union([z.string().min(1, 'a pattern must not be empty'), z.instanceof(RegExp)]));

const optionsSchema = z.strictObject({
  needsApproval: z.custom<Approval<string>>((value) => typeof value === 'boolean' || typeof value === 'function', 'expected a boolean or a function').optional(),
  allow: rules.optional(),
  deny: rules.optional(),
  defaultTimeoutMs: ms.default(120_000),
  maxTimeoutMs: ms.default(600_000),
  maxOutputChars: z.number().int().min(200).default(30_000),
  cwd: z.string().optional(),
  env: z.record(z.string(), z.string()).optional(),
  name: z.string().min(1).default('shell'),
  stripAnsi: z.boolean().default(true),
  background: z.boolean().default(false),
  approvals: z.instanceof(SessionApprovals, { error: 'expected what createApprovals() gives' }).optional(),
});

type Settings = z.output<typeof optionsSchema>;

/** Bytes kept per character asked for: enough for UTF-8 and for escape sequences that are removed later. */
const BYTES_PER_CHAR = 4;

type Result = ShellToolResult | ShellToolStarted;

export function createShellTool(
  shell: ShellProvider & ProcessProvider,
  options: ShellToolOptions & { background: true },
): Tool<ShellToolInput, ShellToolResult | ShellToolStarted>;
export function createShellTool(shell: ShellProvider, options?: ShellToolOptions): Tool<ShellToolInput, ShellToolResult>;
export function createShellTool(shell: ShellProvider, options: ShellToolOptions = {}): Tool<ShellToolInput, Result> {
  const settings = checkOptions('createShellTool', optionsSchema, options);
  if (settings.background) checkProvider(shell, 'createShellTool');
  return defineTool<ShellToolInput, Result>({
    name: settings.name,
    description: describe(settings),
    readOnly: false,
    schema: inputSchema(settings),
    // A refused command is never offered for approval: `run` refuses it with the reason.
    approval: async (input) => !refusal(input.command, settings) && (await asks(shell, input, settings)),
    run: async (input, { signal }) => {
      const refused = refusal(input.command, settings);
      if (refused) throw new PermissionDeniedError(refused);
      if (settings.background && input.background) return await start(shell as ShellProvider & ProcessProvider, input, settings, signal);
      return answer(await exec(shell, input, settings, signal), settings);
    },
  });
}

/** As given in the options; else the workspace's policy; else always. A denied command is not asked about: it fails. */
async function asks(shell: ShellProvider, { command, cwd }: ShellToolInput, settings: Settings): Promise<boolean> {
  const { needsApproval, approvals, name } = settings;
  const policy = policyOf(shell);
  const folder = cwd ?? settings.cwd ?? '.';
  const action = policy?.decideCommand(command, folder).action;
  if (action === 'deny') return false;
  const ask = typeof needsApproval === 'function' ? await needsApproval(command) : (needsApproval ?? action !== 'allow');
  return ask && approvals?.coversCommand(name, command, folder, policy) !== true;
}

function describe({ defaultTimeoutMs, background }: Settings): string {
  const servers = ' For servers, watchers and long builds set background: it returns a process_id at once, for read_process_output and kill_process.';
  return (
    'Runs a command line in the workspace and returns exitCode, stdout and stderr. stdin is empty: use flags that do not ask. ' +
    `The whole process tree is ended after timeout_ms (default ${defaultTimeoutMs}).` +
    (background ? servers : '')
  );
}

function inputSchema({ maxTimeoutMs, background }: Settings): z.ZodType<ShellToolInput> {
  const inBackground = z.boolean().nullish().describe('Let it run on, without a timeout, and return at once');
  return z.object({
    command: z.string().min(1).describe('The command line'),
    timeout_ms: z.number().int().min(1).nullish().describe(`Milliseconds, at most ${maxTimeoutMs}`),
    cwd: z.string().nullish().describe('Workspace-relative directory; default: the root'),
    description: z.string().nullish().describe('What the command is for, in a few words'),
    ...(background ? { background: inBackground } : {}),
  }) as unknown as z.ZodType<ShellToolInput>;
}

function refusal(command: string, { allow, deny }: Settings): string | undefined {
  checkString('command', command);
  return checkRules(command, allow, deny);
}

async function exec(shell: ShellProvider, input: ShellToolInput, settings: Settings, signal: AbortSignal | undefined): Promise<ExecResult> {
  const timeoutMs = Math.min(input.timeout_ms ?? settings.defaultTimeoutMs, settings.maxTimeoutMs);
  const cwd = input.cwd ?? settings.cwd;
  return await shell.exec(input.command, {
    timeoutMs,
    maxOutputBytes: settings.maxOutputChars * BYTES_PER_CHAR,
    ...(cwd === undefined ? {} : { cwd }),
    ...(settings.env ? { env: settings.env } : {}),
    ...(signal ? { signal } : {}),
  });
}

async function start(shell: ProcessProvider, input: ShellToolInput, settings: Settings, signal: AbortSignal | undefined): Promise<ShellToolStarted> {
  const cwd = input.cwd ?? settings.cwd;
  const { id, pid } = await shell.spawn(input.command, {
    maxOutputChars: settings.maxOutputChars,
    ...(cwd === undefined ? {} : { cwd }),
    ...(settings.env ? { env: settings.env } : {}),
    ...(signal ? { signal } : {}),
  });
  return { processId: id, pid, note: 'Runs in the background. Read its output with read_process_output, end it with kill_process.' };
}

function answer(result: ExecResult, settings: Settings): ShellToolResult {
  // A sandbox's hint says which of its limits explains the result.
  const note = [result.note ?? endNote(result), (result as SandboxResult).hint].filter(Boolean).join(' ');
  return {
    exitCode: result.exitCode,
    stdout: readable(result.stdout, settings),
    stderr: readable(result.stderr, settings),
    ...(result.timedOut ? { timedOut: true as const } : {}),
    ...(result.aborted ? { aborted: true as const } : {}),
    ...(note ? { note } : {}),
  };
}

function readable(output: string, settings: Settings): string {
  return clipText(settings.stripAnsi ? stripAnsi(output) : output, settings.maxOutputChars);
}

/** For providers that give no note of their own. */
function endNote({ timedOut, aborted }: ExecResult): string | undefined {
  if (timedOut) return 'The command was ended at its timeout; pass a larger timeout_ms if it needs longer.';
  return aborted ? 'The command was ended because the run was aborted.' : undefined;
}
