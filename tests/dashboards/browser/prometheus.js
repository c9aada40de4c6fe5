// A data source for a real Prometheus: what Grafana's own sends, less what no board of ours uses.
import { FieldType, toDataFrame } from '@grafana/data';
import { RuntimeDataSource, sceneGraph } from '@grafana/scenes';

const SCRAPE_SECONDS = 15; // as deploy/grafana's data source says
const label = (pattern, labels) => pattern.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, name) => labels[name] ?? '').trim();
const series = (labels) => Object.entries(labels).map(([name, value]) => `${name}="${value}"`).join(', ');

export class Prometheus extends RuntimeDataSource {
  constructor(url, settings) {
    super(settings.type, settings.uid);
    this.url = url;
    this.name = settings.name;
    this.meta = settings.meta;
  }

  async query(request) {
    const step = Math.max(Math.ceil(request.intervalMs / 1000), SCRAPE_SECONDS);
    const window = Math.max(step + SCRAPE_SECONDS, 4 * SCRAPE_SECONDS);
    const [from, to] = [request.range.from.valueOf() / 1000, request.range.to.valueOf() / 1000];
    const answers = await Promise.all(request.targets.map(async (target) => {
      const text = this.interpolated(target.expr, request)
        .replaceAll('$__rate_interval', `${window}s`).replaceAll('$__interval', `${step}s`);
      const found = target.instant
        ? await this.ask('/api/v1/query', { query: text, time: to })
        : await this.ask('/api/v1/query_range', { query: text, start: from, end: to, step });
      return target.format === 'table' ? [this.table(target, found.result)] : this.lines(target, found.result, step);
    }));
    return { data: answers.flat() };
  }

  interpolated(text, request) {
    return sceneGraph.interpolate(window.scene, text, request.scopedVars, (value) =>
      Array.isArray(value) ? `(${value.join('|')})` : String(value));
  }

  table(target, result) {
    const names = [...new Set(result.flatMap((one) => Object.keys(one.metric)))].sort();
    return toDataFrame({
      refId: target.refId,
      fields: [
        { name: 'Time', type: FieldType.time, values: result.map((one) => one.value[0] * 1000) },
        ...names.map((name) => ({ name, type: FieldType.string, values: result.map((one) => one.metric[name] ?? '') })),
        { name: window.several?.(target) ? `Value #${target.refId}` : 'Value', type: FieldType.number,
          values: result.map((one) => Number(one.value[1])) },
      ],
    });
  }

  lines(target, result, step) {
    return result.map((one) => {
      const values = one.values || [one.value];
      const name = target.legendFormat ? label(target.legendFormat, one.metric) : series(one.metric);
      return toDataFrame({
        refId: target.refId, name,
        fields: [
          { name: 'Time', type: FieldType.time, values: values.map(([at]) => at * 1000), config: { interval: step * 1000 } },
          { name: 'Value', type: FieldType.number, labels: one.metric, values: values.map(([, value]) => Number(value)),
            config: { displayNameFromDS: name } },
        ],
      });
    });
  }

  async metricFindQuery(query) {
    const text = this.interpolated(typeof query === 'string' ? query : query.query, {});
    const found = /label_values\((.+),\s*([a-zA-Z_]\w*)\s*\)$/.exec(text);
    if (!found) return [];
    const values = await this.ask(`/api/v1/label/${found[2]}/values`, { 'match[]': found[1] });
    return values.map((value) => ({ text: value, value }));
  }

  async ask(path, parameters) {
    const answer = await fetch(`${this.url}${path}?${new URLSearchParams(parameters)}`);
    const told = await answer.json();
    if (told.status !== 'success') {
      console.error('QUERY', told.error, parameters.query);
      throw new Error(told.error);
    }
    return told.data;
  }

  testDatasource() {
    return Promise.resolve({ status: 'success', message: '' });
  }
}
