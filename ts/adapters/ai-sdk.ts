/** croft tools for the AI SDK, version 7: `tools` and `toolApproval` of generateText, streamText and ToolLoopAgent. */
import type { ToolSet } from 'ai';
import type { Tool } from '../providers.js';

/**
 * The tools by name. A failing tool throws, which the SDK reports to the model as a tool error, and the run goes on.
 *
 * @example
 * generateText({ model, tools: aiTools(tools), toolApproval: aiToolApproval(tools), prompt })
 */
export function aiTools(tools: readonly Tool[]): ToolSet {
  return Object.fromEntries(tools.map((tool) => [tool.name, aiTool(tool)])) as ToolSet;
}

function aiTool({ description, inputSchema, execute, readOnly }: Tool) {
  return {
    description,
    inputSchema,
    metadata: { readOnly },
    execute: async (input: unknown, options: { toolCallId: string; abortSignal?: AbortSignal | undefined }) =>
      await execute(input, { toolCallId: options.toolCallId, signal: options.abortSignal }),
    toModelOutput: ({ output }: { output: unknown }) => modelOutput(output),
  };
}

/** Text as text, a picture as a picture, the rest as JSON. */
function modelOutput(output: unknown) {
  if (typeof output === 'string') return { type: 'text' as const, value: output };
  if (!isImage(output)) return { type: 'json' as const, value: output as never };
  const { mediaType, data } = output;
  return { type: 'content' as const, value: [{ type: 'file' as const, mediaType, data: { type: 'data' as const, data } }] };
}

function isImage(output: unknown): output is { type: 'image'; mediaType: string; data: string } {
  return typeof output === 'object' && output !== null && 'type' in output && output.type === 'image' && 'data' in output;
}

/** Each tool's `needsApproval` as the SDK's `toolApproval`: the run pauses where a human is to decide. */
export function aiToolApproval(tools: readonly Tool[]): Record<string, (input: unknown) => Promise<'user-approval' | 'not-applicable'>> {
  return Object.fromEntries(tools.map((tool) => [tool.name, async (input: unknown) => await ask(tool, input)]));
}

async function ask(tool: Tool, input: unknown): Promise<'user-approval' | 'not-applicable'> {
  return (await tool.needsApproval(input)) ? 'user-approval' : 'not-applicable';
}
