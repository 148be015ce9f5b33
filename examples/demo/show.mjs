// Prints a run as a person would want to watch it.
const MAX_LINES = 16;
const color = process.stdout.isTTY ? (code, text) => `\x1b[${code}m${text}\x1b[0m` : (_, text) => text;

export function showText(text) {
  console.log(`\n${text}`);
}

export function showCall(name, input) {
  const args = Object.entries(input).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  console.log(`\n${color('36;1', `> ${name}`)}  ${color(2, args.join(', '))}`);
}

export function showResult(output) {
  if (output.type === 'tool-error') return print(color(31, String(output.error?.message ?? output.error)));
  const value = output.type === 'tool-result' ? output.output : output;
  print(typeof value === 'string' ? value : describe(value));
}

function describe({ exitCode, stdout, stderr, note }) {
  const parts = [stdout.trimEnd(), stderr.trimEnd(), note && `[${note}]`, color(exitCode === 0 ? 32 : 31, `exit code ${exitCode}`)];
  return parts.filter(Boolean).join('\n');
}

function print(text) {
  const lines = text.trimEnd().split('\n');
  const shown = lines.length > MAX_LINES ? [...lines.slice(0, 6), `... ${lines.length - 12} more lines`, ...lines.slice(-6)] : lines;
  console.log(shown.map((line) => `  ${line}`).join('\n'));
}
