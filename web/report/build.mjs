// Builds dist/report.html: one file with the script, the styles and the
// placeholder for the data inlined. Usage: node build.mjs [--out DIR]
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(fileURLToPath(import.meta.url));
process.chdir(root);
const TOKEN = '__BERTH_' + 'DATA__';

function outputDirectory() {
  const i = process.argv.indexOf('--out');
  if (i < 0) return join(root, 'dist');
  if (!process.argv[i + 1]) throw new Error('--out needs a directory');
  return resolve(process.argv[i + 1]);
}

function walk(dir) {
  return readdirSync(dir, { withFileTypes: true }).flatMap((e) =>
    e.isDirectory() ? walk(`${dir}/${e.name}`) : [`${dir}/${e.name}`]);
}

// The same bytes as `LC_ALL=C sort | xargs sha256sum | sha256sum`.
function sourceHash() {
  const files = [...walk('src'), 'build.mjs', 'package-lock.json', 'package.json', 'tsconfig.json'];
  files.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const sha = (bytes) => createHash('sha256').update(bytes).digest('hex');
  return sha(files.map((f) => `${sha(readFileSync(f))}  ${f}\n`).join(''));
}

async function bundle(entry) {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    minify: true,
    charset: 'utf8',
    format: 'iife',
    target: ['chrome100', 'firefox100', 'safari15'],
    legalComments: 'none',
    logLevel: 'warning',
  });
  return result.outputFiles[0].text.trim();
}

const replaceOnce = (text, mark, value) => {
  if (text.split(mark).length !== 2) throw new Error(`expected exactly one ${mark}`);
  return text.split(mark).join(value);
};

const script = await bundle('src/main.ts');
const style = await bundle('src/styles/main.css');
if (/<\/script/i.test(script) || /<!--/.test(script)) throw new Error('the script would end its own tag');
if (/<\/style/i.test(style)) throw new Error('the styles would end their own tag');
const uplot = JSON.parse(readFileSync('node_modules/uplot/package.json', 'utf8'));
const licence = readFileSync('node_modules/uplot/LICENSE', 'utf8').trim();

let page = readFileSync('src/index.html', 'utf8');
page = replaceOnce(page, '{{SOURCE_SHA256}}', sourceHash());
page = replaceOnce(page, '{{STYLE}}', style);
page = replaceOnce(page, '{{NOTICES}}', `uPlot ${uplot.version}\n\n${licence}`);
page = replaceOnce(page, '{{SCRIPT}}', script);
if (page.split(TOKEN).length !== 2) throw new Error('the data token must occur exactly once');

const out = outputDirectory();
mkdirSync(out, { recursive: true });
writeFileSync(join(out, 'report.html'), page);
console.log(`report.html: ${(Buffer.byteLength(page) / 1024).toFixed(1)} KiB`);
