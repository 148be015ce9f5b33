// The AI SDK, the real package with its own mock model, drives the tools.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generateText, isStepCount, type LanguageModel } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { createFsTools, createShellTool, MemoryWorkspace } from 'croft';
import { aiToolApproval, aiTools } from 'croft/ai-sdk';

type Turn = { tool: string; input: object } | string;

function scripted(turns: Turn[]): LanguageModel {
  let turn = 0;
  return new MockLanguageModelV4({
    doGenerate: async () => {
      const next = turns[turn++] ?? 'done';
      const content = typeof next === 'string'
        ? [{ type: 'text' as const, text: next }]
        : [{ type: 'tool-call' as const, toolCallId: `call-${turn}`, toolName: next.tool, input: JSON.stringify(next.input) }];
      const unified = typeof next === 'string' ? ('stop' as const) : ('tool-calls' as const);
      return { content, finishReason: { unified, raw: unified }, usage: { inputTokens: tokens, outputTokens: tokens }, warnings: [] } as never;
    },
  });
}

const tokens = { total: 0 };

test('an edit and a command run, and a failing call lets the run go on', async () => {
  const workspace = new MemoryWorkspace({
    files: { 'src/math.ts': 'export const add = (a: number, b: number) => a - b;\n' },
    exec: (command) => (command === 'npm test' ? { stdout: '1 passed\n' } : { exitCode: 1 }),
  });
  const tools = [...createFsTools(workspace), createShellTool(workspace, { needsApproval: false })];
  const { text, steps } = await generateText({
    model: scripted([
      { tool: 'read_file', input: { path: '../secret' } },
      { tool: 'edit_file', input: { path: 'src/math.ts', old_string: 'a - b', new_string: 'a + b' } },
      { tool: 'shell', input: { command: 'npm test' } },
      'Fixed.',
    ]),
    tools: aiTools(tools),
    toolApproval: aiToolApproval(tools),
    stopWhen: isStepCount(10),
    prompt: 'add() is broken',
  });
  assert.equal(text, 'Fixed.');
  assert.equal(workspace.snapshot()['src/math.ts'], 'export const add = (a: number, b: number) => a + b;\n');
  assert.deepEqual(workspace.commands.map(({ command }) => command), ['npm test']);
  const parts = steps.flatMap(({ content }) => content);
  const failure = parts.find((part) => part.type === 'tool-error');
  assert.match(String((failure as { error: Error }).error.message), /climbs above the root/);
});

test('a tool that needs approval pauses the run and executes nothing', async () => {
  const workspace = new MemoryWorkspace();
  const tools = [createShellTool(workspace)];
  const { content } = await generateText({
    model: scripted([{ tool: 'shell', input: { command: 'rm -r build' } }]),
    tools: aiTools(tools),
    toolApproval: aiToolApproval(tools),
    stopWhen: isStepCount(3),
    prompt: 'clean up',
  });
  assert.ok(content.some(({ type }) => type === 'tool-approval-request'), JSON.stringify(content));
  assert.deepEqual(workspace.commands, []);
});
