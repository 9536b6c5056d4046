// End-to-end checks of report.html. Started by run-test.sh.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import * as data from './data.mjs';
import { checkHoverAndPin, checkIdle, checkPinch, checkPixels, checkSearch, checkZoomAndPan, measure, view } from './gantt_checks.mjs';
import { close, equal, finish, inGroup, launch, ok, open, overflow, parseHuman, settle, writePage } from './harness.mjs';

const dist = readFileSync(join(process.env.BERTH_REPORT_DIR, 'dist', 'report.html'), 'utf8');
const luminance = (page) => page.evaluate(() => {
  const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
  return (r + g + b) / 3;
});

async function checkCards(page, run) {
  const cards = await page.$$eval('.card', (list) => list.map((c) => ({
    key: c.dataset.metric, raw: Number(c.querySelector('.card-value').dataset.raw), text: c.querySelector('.card-value').firstChild.textContent,
  })));
  ok(cards.length > 0, 'there are cards');
  const wrong = cards.filter((c) => c.raw !== run.summary[c.key]
    || Math.abs(parseHuman(c.text) * (c.key === 'overhead_gpu_hours' ? 1 / 3600 : 1) - c.raw) > Math.abs(c.raw) * 0.006 + 0.0006);
  ok(wrong.length === 0, `${cards.length} cards show the numbers of ${run.label}`, JSON.stringify(wrong));
}

async function checkCharts(page) {
  for (const name of await page.evaluate(() => window.__berth.chartNames())) {
    const ink = await page.evaluate((n) => window.__berth.plot.series(n).map((s, i) => (s.shown ? window.__berth.plot.inked(n, i) : null)), name);
    ok(ink.some((v) => v > 50), `the chart ${name} has lines on it`, JSON.stringify(ink));
  }
}

async function checkWidths(browser, file) {
  for (const width of [360, 1366]) {
    const { page, done } = await open(browser, file, { width, touch: width < 500 });
    ok(await overflow(page) <= 0, `no sideways page scrolling at ${width} px`, `${await overflow(page)} px too wide`);
    await done();
  }
}

async function checkDark(browser, file) {
  const { page, done } = await open(browser, file, { dark: true });
  ok(await luminance(page) < 60, 'dark when the system is dark', `${await luminance(page)}`);
  await checkCharts(page);
  if (await page.locator('#theme-toggle').count()) {
    await page.click('#theme-toggle');
    await settle(page);
    ok(await luminance(page) > 200, 'the switch turns it light', `${await luminance(page)}`);
    await checkCharts(page);
  }
  await done();
}

async function testSingle(browser) {
  inGroup('single');
  const set = data.single();
  const run = set.runs[0];
  const file = writePage('single', data.inject(dist, set));
  const { page, done } = await open(browser, file);
  equal(await page.locator('h1').innerText(), set.title, 'the title');
  equal(await page.locator('.run-bar, #compare').count(), 0, 'no run selector and no comparison for one run');
  await checkCards(page, run);
  await checkCharts(page);
  await checkPixels(page, 'whole view', 100);
  await checkIdle(page, run.gantt);
  await checkHoverAndPin(page, run.gantt);
  await checkZoomAndPan(page);
  await checkSearch(page, run.gantt);
  await page.selectOption('#gantt-color', 'user');
  await settle(page);
  await checkPixels(page, 'coloured by user', 100);
  const byUser = await page.evaluate((g) => {
    const seen = {};
    return g.job.every((j, i) => {
      const c = String(window.__berth.gantt.color(i));
      return g.kind[i] === 1 || (seen[g.jobs[j].user] ??= c) === c;
    });
  }, run.gantt);
  ok(byUser, 'jobs of one user share a colour');
  await testTimeline(page);
  await testDetails(page, run);
  await done();
  await checkWidths(browser, file);
  await checkDark(browser, file);
  const phone = await open(browser, file, { width: 390, height: 844, touch: true });
  await checkPinch(phone.page);
  await phone.done();
}

async function testTimeline(page) {
  const plot = page.locator('#queue-chart .u-over');
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  const range = (name) => page.evaluate((n) => window.__berth.plot.range(n), name);
  const whole = await range('queue');
  await page.mouse.move(box.x + box.width * 0.5, box.y + 50);
  await settle(page);
  const values = await page.$$eval('#gpus-chart .chip[aria-pressed=true] .legend-value', (l) => l.map((e) => e.textContent));
  ok(values.length > 0 && values.every((v) => v !== ''), 'the cursor of one chart reads out the other', JSON.stringify(values));
  await page.mouse.move(box.x + box.width * 0.25, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 60, { steps: 5 });
  await page.mouse.up();
  await settle(page);
  const [q, g] = [await range('queue'), await range('gpus')];
  close(q[0], whole[0] + (whole[1] - whole[0]) * 0.25, (whole[1] - whole[0]) * 0.01, 'dragging zooms to the start of the selection');
  close(q[1], whole[0] + (whole[1] - whole[0]) * 0.5, (whole[1] - whole[0]) * 0.01, 'dragging zooms to the end of the selection');
  equal(g, q, 'the other chart follows');
  await page.mouse.dblclick(box.x + box.width * 0.5, box.y + 50);
  await settle(page);
  equal([await range('queue'), await range('gpus')], [whole, whole], 'a double click resets both');
}

async function testDetails(page, run) {
  await page.click('#breakdown [data-tab=by_user]');
  equal(await page.locator('#breakdown-table tbody tr').count(), run.by_user.length, 'the user tab lists all users');
  await page.selectOption('#breakdown-metric', 'gpu_hours');
  const shown = await page.$$eval('#breakdown .bar-row', (l) => l.map((r) => r.querySelector('.bar-fill').getBoundingClientRect().width / r.querySelector('.bar-track').getBoundingClientRect().width));
  const most = Math.max(...run.by_user.map((u) => u.gpu_hours));
  ok(run.by_user.every((u, i) => Math.abs(shown[i] - u.gpu_hours / most) < 0.01), 'bar lengths follow the values');
  equal(await page.locator('#preemptions .bar-row').count(), run.preemption_histogram.length, 'the preemption histogram has all bins');
  equal(await page.$$eval('#rejected-table tbody th', (l) => l.map((e) => e.textContent)), run.rejected.map((r) => r.job), 'rejected jobs are shown as text');
  ok((await page.locator('#metrics-table').innerText()).includes('custom_metric'), 'unknown metrics are listed');
  equal(await page.locator('#metrics-table tbody tr').count(), Object.keys(run.summary).length, 'all metrics are listed');
  ok((await page.locator('#fairness').innerText()).includes(run.summary.jain.toFixed(3)), 'the Jain index is shown');
}

async function testPolicies(browser) {
  inGroup('policies');
  const set = data.policies();
  const file = writePage('policies', data.inject(dist, set));
  const { page, done } = await open(browser, file);
  equal(await page.locator('.run-bar [role=tab]').count(), 6, 'six run tabs');
  const order = () => page.$$eval('#compare-table tbody tr', (l) => l.map((r) => Number(r.dataset.run)));
  equal(await order(), [0, 1, 2, 3, 4, 5], 'the table starts in the given order');
  const sorted = (key) => [0, 1, 2, 3, 4, 5].sort((a, b) => set.runs[a].summary[key] - set.runs[b].summary[key]);
  await page.click('#compare-table th[data-key=avg_jct] button');
  equal(await order(), sorted('avg_jct'), 'a click sorts by average JCT');
  equal(await page.getAttribute('#compare-table th[data-key=avg_jct]', 'aria-sort'), 'ascending', 'aria-sort tells the direction');
  await page.click('#compare-table th[data-key=avg_jct] button');
  equal(await order(), sorted('avg_jct').reverse(), 'a second click reverses');
  await page.click('#compare-table th[data-key=gpu_utilization] button');
  equal(await order(), sorted('gpu_utilization').reverse(), 'utilisation sorts downwards first');

  const [fifo, , , srtf] = set.runs;
  const cell = page.locator('#compare-table tr[data-run="3"] td[data-metric=avg_queue_time]');
  close(parseHuman((await cell.locator('.versus').innerText()).replace(/[^\d.]/g, '')), srtf.summary.avg_queue_time / fifo.summary.avg_queue_time, 0.0051, 'the ratio to the baseline is right');
  ok(await cell.locator('.versus.good').count() === 1, 'a shorter queueing time counts as better');
  ok(await cell.locator('.interval').count() === 1, 'the confidence interval is shown');
  equal(await page.locator('#compare-table tr[data-run="0"] .versus').count(), 0, 'the baseline has no ratio to itself');
  const best = await page.$$eval('#compare-table td.best[data-metric=avg_jct]', (l) => l.map((e) => Number(e.parentElement.dataset.run)));
  equal(best, [sorted('avg_jct')[0]], 'the best value is emphasised');
  const unitCell = parseHuman(await page.locator('#compare-table tr[data-run="3"] td[data-metric=avg_jct] .value').innerText());
  const unit = { h: 3600, min: 60, d: 86400, s: 1 }[(await page.locator('#compare-table th[data-key=avg_jct] .unit').innerText()).trim()];
  close(unitCell * unit, srtf.summary.avg_jct, srtf.summary.avg_jct * 0.006, 'the table shows the value in the unit of its column');

  await page.click('.run-bar [data-tab="3"]');
  await settle(page);
  await checkCards(page, srtf);
  const versus = await page.locator('.card[data-metric=avg_jct] .versus').innerText();
  close(Number(/([\d.]+)×/.exec(versus)[1]), srtf.summary.avg_jct / fifo.summary.avg_jct, 0.0051, 'the card compares with the baseline');
  await checkPixels(page, 'second run', 50);
  await page.click('.run-bar [data-tab="5"]');
  await settle(page);
  ok(await page.locator('#gantt .empty').isVisible() && await page.locator('.gantt-canvas').count() === 0, 'a run without intervals says so');
  await page.click('.run-bar [data-tab="1"]');
  await settle(page);
  ok(await page.locator('.gantt-canvas').isVisible(), 'the chart comes back with the next run');

  const ink = () => page.evaluate(() => window.__berth.plot.inked('cdf', 3));
  for (const kind of ['queue', 'slowdown', 'ftf', 'jct']) {
    await page.click(`#distributions [data-tab=${kind}]`);
    await settle(page);
    ok(await ink() > 100, `the ${kind} distribution is drawn`, `${await ink()}`);
  }
  await page.click('#cdf-chart .chip[data-series=srtf]');
  await settle(page);
  ok(await ink() < 20, 'the legend hides a line', `${await ink()}`);
  await page.click('#distributions [data-tab=queue]');
  await settle(page);
  ok(await ink() < 20, 'it stays hidden on the next tab');
  await page.click('#cdf-chart .chip[data-series=srtf]');
  await settle(page);
  ok(await ink() > 100, 'the legend shows it again');
  await page.click('#timeline [data-tab=all]');
  await settle(page);
  equal((await page.evaluate(() => window.__berth.plot.series('queue'))).length, 6, 'all runs over time');
  await checkCharts(page);
  await done();
  await checkWidths(browser, file);
  await checkDark(browser, file);
}

async function testHuge(browser) {
  inGroup('huge');
  const set = data.huge();
  const run = set.runs[0];
  const file = writePage('huge', data.inject(dist, set));
  const { page, done } = await open(browser, file);
  equal(await page.evaluate(() => window.__berth.gantt.lanes()), 2000, '2,000 lanes');
  ok(await page.evaluate(() => window.__berth.gantt.size()) >= 100000, '100,000 intervals');
  ok((await page.locator('.gantt-shown').innerText()).includes('240'), 'it says that only a part is shown');
  const start = await view(page);
  equal([start.zoomed, start.top], [false, 0], 'the first view shows everything');
  close(start.laneHeight * 2000, start.plot.height, 0.01, 'all lanes fit');
  await measure(page, 'everything', 50);
  ok(await page.evaluate(() => window.__berth.gantt.visited() >= window.__berth.gantt.size()), 'every interval takes part in the first view');
  await page.evaluate(() => document.getElementById('gantt-lanes-in').click());
  await measure(page, 'taller lanes', 50);
  for (let i = 0; i < 12; i++) await page.click('#gantt-lanes-in');
  await measure(page, 'tallest lanes, all of the time', 50);
  for (let i = 0; i < 5; i++) await page.click('#gantt-zoom-in');
  await settle(page);
  await measure(page, 'zoomed in', 50);
  const v = await view(page);
  ok(v.laneHeight >= 13, 'lanes are tall enough for names', `${v.laneHeight}`);
  const labels = await page.evaluate(() => {
    const canvas = document.querySelector('.gantt-canvas');
    const s = canvas.width / canvas.clientWidth;
    const { plot } = window.__berth.gantt.view();
    const { data: px } = canvas.getContext('2d').getImageData(0, 0, Math.floor((plot.left - 6) * s), Math.floor(plot.height * s));
    let n = 0;
    for (let i = 3; i < px.length; i += 4) if (px[i] > 100) n++;
    return n;
  });
  ok(labels > 300, 'device names are drawn', `${labels} pixels`);
  await checkPixels(page, 'zoomed in', 3);
  await page.click('#gantt-reset');
  await settle(page);
  await checkSearch(page, run.gantt);
  await done();
  await checkWidths(browser, file);
}

async function testOdd(browser) {
  inGroup('empty');
  const none = writePage('empty', data.inject(dist, data.empty()));
  const { page, done } = await open(browser, none);
  ok((await page.locator('#summary').innerText()).includes('no jobs'), 'the page says that there are no jobs');
  equal(await page.locator('canvas').count(), 0, 'no charts without data');
  ok((await page.locator('h1').innerText()).length > 0, 'the title is there');
  await done();
  await checkWidths(browser, none);

  inGroup('sparse');
  const sparse = writePage('sparse', data.inject(dist, data.sparse()));
  const many = await open(browser, sparse);
  equal(await many.page.locator('.run-bar [role=tab]').count(), 40, 'forty runs without details');
  equal(new Set(await many.page.$$eval('.run-bar [role=tab]', (l) => l.map((e) => e.textContent))).size, 40, 'equal names are told apart');
  await many.page.click('#compare-table th[data-key=avg_jct] button');
  await many.page.click('.run-bar [data-tab="39"]');
  await many.done();
  await checkWidths(browser, sparse);

  inGroup('unfilled');
  const raw = await open(browser, writePage('raw', dist));
  ok(await raw.page.locator('.notice').first().isVisible(), 'the page without data explains itself');
  await raw.done();
}

/** What must hold for every report, whatever is in it. */
async function testReal(browser, file) {
  inGroup(file.split('/').pop());
  if (!ok(existsSync(file), 'the file exists')) return;
  const { page, done } = await open(browser, resolve(file));
  const report = await page.evaluate(() => {
    try {
      return JSON.parse(document.getElementById('berth-data').textContent);
    } catch {
      return null;
    }
  });
  if (!ok(report !== null && report.runs?.length > 0, 'the data parses and has runs')) return;
  ok((await page.locator('h1').innerText()).trim() !== '', 'there is a title');
  for (const [i, run] of report.runs.slice(0, 8).entries()) {
    if (report.runs.length > 1) {
      await page.click(`.run-bar [data-tab="${i}"]`);
      await settle(page);
    }
    if (run.summary?.jobs > 0) await checkCards(page, run);
    await checkCharts(page);
    if (!await page.evaluate(() => window.__berth.gantt.exists())) continue;
    await measure(page, `run ${i + 1}`, 100);
    await checkSearch(page, run.gantt);
    if (i === 0) await checkZoomAndPan(page);
  }
  await done();
  await checkWidths(browser, resolve(file));
  await checkDark(browser, resolve(file));
}

ok(dist.split('__BERTH_DATA__').length === 2, 'the data token occurs exactly once in the bundle');
ok(!/\b(src|href)=["']?(https?:)?\/\//.test(dist), 'the bundle refers to nothing outside itself');
const browser = await launch();
try {
  await testSingle(browser);
  await testPolicies(browser);
  await testHuge(browser);
  await testOdd(browser);
  for (const file of process.argv.slice(2)) await testReal(browser, file);
} catch (error) {
  ok(false, 'the checks ran to the end', error.stack);
} finally {
  await browser.close();
}
process.exitCode = finish();
