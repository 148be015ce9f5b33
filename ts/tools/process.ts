/** The two tools for what the shell tool started in the background. */
import { z } from 'zod';
import { checkOptions, invalid } from '../check.js';
import type { ProcessOutput, ProcessProvider, ProcessToolInput, ProcessToolResult, ProcessToolsOptions, Tool, WorkspaceCapabilities } from '../providers.js';
import { stripAnsi } from '../text.js';
import { defineTool } from './tool.js';

const optionsSchema = z.strictObject({
  maxWaitMs: z.number().int().min(0).default(60_000),
  stripAnsi: z.boolean().default(true),
});

type Settings = z.output<typeof optionsSchema>;

const processId = z.string().min(1).describe('The id that the shell tool gave, such as bg-1a2b3c');

export function createProcessTools(processes: ProcessProvider, options: ProcessToolsOptions = {}): Tool<ProcessToolInput, ProcessToolResult>[] {
  checkProvider(processes, 'createProcessTools');
  const settings = checkOptions('createProcessTools', optionsSchema, options);
  return [readTool(processes, settings), killTool(processes, settings)];
}

/** A shell that cannot keep processes is refused when the tool is made, not when the model calls it. */
export function checkProvider(shell: object, who: string): asserts shell is ProcessProvider {
  const methods = ['spawn', 'readProcessOutput', 'killProcess'];
  const missing = methods.filter((name) => typeof (shell as Record<string, unknown>)[name] !== 'function');
  const reason = `${who}: this shell cannot run processes in the background: `;
  if (missing.length === 0 && !keepsProcesses(shell)) throw invalid(`${reason}its executor has no spawn()`);
  if (missing.length > 0) throw invalid(`${reason}it has no ${missing.join(', ')}`);
}

/** A workspace has the methods always; its executor may not. */
export function keepsProcesses(shell: object): boolean {
  const { capabilities } = shell as { capabilities?: () => Partial<WorkspaceCapabilities> };
  return typeof capabilities !== 'function' || capabilities.call(shell).executor?.spawn !== false;
}

function readTool(processes: ProcessProvider, settings: Settings): Tool<ProcessToolInput, ProcessToolResult> {
  const wait = z.number().int().min(0).nullish().describe(`Wait so long for output or the end, at most ${settings.maxWaitMs} ms. Default: do not wait`);
  return defineTool<ProcessToolInput, ProcessToolResult>({
    name: 'read_process_output',
    description: 'Reads what a background process has written since the last read, and whether it still runs. Reading after its end is no error.',
    readOnly: true,
    schema: z.object({ process_id: processId, wait_ms: wait }) as unknown as z.ZodType<ProcessToolInput>,
    run: async ({ process_id, wait_ms }, { signal }) => {
      const waitMs = Math.min(wait_ms ?? 0, settings.maxWaitMs);
      return answer(await processes.readProcessOutput(process_id, { waitMs, ...(signal ? { signal } : {}) }), settings);
    },
  });
}

function killTool(processes: ProcessProvider, settings: Settings): Tool<ProcessToolInput, ProcessToolResult> {
  return defineTool<ProcessToolInput, ProcessToolResult>({
    name: 'kill_process',
    description: 'Ends a background process and everything it started, and returns its last output.',
    readOnly: false,
    schema: z.object({ process_id: processId }) as unknown as z.ZodType<ProcessToolInput>,
    run: async ({ process_id }) => answer(await processes.killProcess(process_id), settings),
  });
}

function answer({ output, status, exitCode, droppedChars }: ProcessOutput, settings: Settings): ProcessToolResult {
  return {
    status,
    ...(exitCode === undefined ? {} : { exitCode }),
    output: settings.stripAnsi ? stripAnsi(output) : output,
    ...(droppedChars > 0 ? { note: `${droppedChars} older characters were dropped: read more often, or write to a file.` } : {}),
  };
}
