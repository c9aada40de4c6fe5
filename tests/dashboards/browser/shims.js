// What Grafana's application sets up before its components can be used: registries of field options and transformations,
// and the services that scenes ask for. Here they stand without a Grafana.
import * as data from '@grafana/data';
import * as runtime from '@grafana/runtime';
import { from, map } from 'rxjs';

export const theme = data.createTheme({ colors: { mode: 'dark' } });
export const plugins = {};

const same = data.identityOverrideProcessor;
const item = (id, process = same, more = {}) => ({
  id, path: id, name: id, process, settings: {},
  editor: () => null, override: () => null, shouldApply: () => true, getItemsCount: () => 0, ...more,
});

const STANDARD = [
  item('displayName', data.displayNameOverrideProcessor),
  item('unit', data.unitOverrideProcessor),
  item('min', data.numberOverrideProcessor),
  item('max', data.numberOverrideProcessor),
  item('decimals', data.numberOverrideProcessor),
  item('noValue', data.stringOverrideProcessor),
  item('color'),
  item('thresholds', data.thresholdsOverrideProcessor),
  item('mappings', data.valueMappingsOverrideProcessor),
  item('links', data.dataLinksOverrideProcessor),
  item('filterable', data.booleanOverrideProcessor),
];
const EDITORS = ['text', 'number', 'boolean', 'select', 'unit', 'links', 'mappings', 'thresholds', 'color', 'slider',
  'radio', 'strings', 'timezone', 'fieldColor', 'stats-picker', 'multi-select', 'dashboard-uid', 'cell-type'];

export function start(source, settings) {
  data.standardFieldConfigEditorRegistry.setInit(() => STANDARD);
  data.standardEditorsRegistry.setInit(() => EDITORS.map((id) => ({ id, name: id, editor: () => null })));
  const known = new Map(
    Object.values(data.standardTransformers).filter((one) => one && one.id).map((one) => [one.id, one]),
  );
  data.standardTransformersRegistry.setInit(() =>
    [...known.values()].map((one) => ({ id: one.id, name: one.name, transformation: one, editor: () => null })),
  );
  runtime.setDataSourceSrv({
    get: async () => source, getList: () => [settings], getInstanceSettings: () => settings,
    registerRuntimeDataSource() {}, reload() {},
  });
  runtime.setRunRequest((asked, request) =>
    from(asked.query(request)).pipe(
      map((answer) => ({
        state: data.LoadingState.Done, series: answer.data, annotations: [], timeRange: request.range, request,
      })),
    ),
  );
  runtime.setPluginImportUtils({
    getPanelPluginFromCache: (id) => plugins[id], importPanelPlugin: async (id) => plugins[id],
  });
  runtime.setTemplateSrv({
    replace: (text) => text, getVariables: () => [], containsTemplate: () => false, updateTimeRange() {},
  });
  runtime.setAppEvents?.({
    publish() {}, subscribe: () => ({ unsubscribe() {} }), getStream: () => from([]),
  });
  runtime.setBackendSrv?.({ fetch: () => from([{ data: {} }]), get: async () => ({}), post: async () => ({}) });
  runtime.setEchoSrv?.({ addEvent() {}, flush() {}, addBackend() {} });
  runtime.config.theme2 = theme;
  runtime.config.panels = runtime.config.panels || {};
}
