// The script of the demo's agent, as the AI SDK's mock model.
import { MockLanguageModelV4 } from 'ai/test';

const TURNS = [
  call('list_dir', { path: '.' }, 'I look at the project first.'),
  call('shell', { command: 'node --test', description: 'Run the tests' }, 'Then I see what fails.'),
  call('grep', { pattern: '^var [smhdwy] =', path: 'index.js', context: 1 }, 'Days are wrong. Where are the units?'),
  call('read_file', { path: 'index.js', offset: 1, limit: 14 }, 'A day has 24 hours. I read the lines before I edit.'),
  call('edit_file', { path: 'index.js', old_string: 'var d = h * 42;', new_string: 'var d = h * 24;' }, 'I fix the constant.'),
  call('shell', { command: 'node --test', description: 'Run the tests again' }, 'And run the tests again.'),
  call('shell', { command: 'node report.js', description: 'Report to the API' }, 'The team wants a report. The API needs a token, which I do not have.'),
  call('shell', { command: 'env', description: 'Look for a token' }, 'It worked. Is there a token in my environment?'),
  [{ type: 'text', text: 'Fixed: a day was 42 hours long. All tests pass now, and the report is filed.' }],
];

function call(toolName, input, thought) {
  return [
    { type: 'text', text: thought },
    { type: 'tool-call', toolCallId: `call-${toolName}-${Math.random().toString(36).slice(2, 8)}`, toolName, input: JSON.stringify(input) },
  ];
}

export function scriptedModel() {
  let turn = 0;
  return new MockLanguageModelV4({
    doGenerate: async () => {
      const content = TURNS[turn++];
      const reason = content.some((part) => part.type === 'tool-call') ? 'tool-calls' : 'stop';
      return { content, finishReason: { unified: reason, raw: reason }, usage: USAGE, warnings: [] };
    },
  });
}

const USAGE = { inputTokens: { total: 0 }, outputTokens: { total: 0 } };
