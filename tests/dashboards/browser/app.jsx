// Draws one board with Grafana's own components: ?board=NAME&prometheus=URL&from=MS&to=MS&engine=NAME
import React from 'react';
import { createRoot } from 'react-dom/client';
import { MemoryRouter } from 'react-router-dom';
import { ThemeContext } from '@grafana/data';
import { GlobalStyles } from '@grafana/ui';
import {
  DataSourceVariable, EmbeddedScene, QueryVariable, SceneDataTransformer, SceneGridItem, SceneGridLayout, SceneGridRow,
  SceneQueryRunner, SceneTimeRange, SceneVariableSet, VariableValueSelectors, VizPanel, sceneUtils,
} from '@grafana/scenes';
import { Prometheus } from './prometheus';
import { start, theme } from './shims';
import { register } from './visuals';

const asked = new URLSearchParams(window.location.search);
const SETTINGS = {
  id: 1, uid: 'prometheus', name: 'Prometheus', type: 'prometheus', access: 'proxy', jsonData: {}, readOnly: true,
  meta: { id: 'prometheus', name: 'Prometheus', info: { logos: {} } },
};
const SOURCE = { type: SETTINGS.type, uid: SETTINGS.uid };

function variable(told) {
  const common = { name: told.name, label: told.label, hide: told.hide };
  if (told.type === 'datasource') {
    return new DataSourceVariable({ ...common, pluginId: told.query, value: SETTINGS.uid, text: SETTINGS.name });
  }
  const value = asked.get(told.name) ?? (told.includeAll ? '$__all' : '');
  return new QueryVariable({
    ...common, datasource: SOURCE, query: told.query, isMulti: told.multi, includeAll: told.includeAll,
    allValue: told.allValue, value, text: value === '$__all' ? 'All' : value, refresh: told.refresh,
  });
}

function item(panel) {
  const { x, y, w: width, h: height } = panel.gridPos;
  const queries = new SceneQueryRunner({ datasource: SOURCE, queries: panel.targets, minInterval: panel.interval });
  const body = new VizPanel({
    title: panel.title, description: panel.description, pluginId: `drawn-${panel.type}`, options: panel.options,
    fieldConfig: panel.fieldConfig,
    $data: new SceneDataTransformer({ transformations: panel.transformations || [], $data: queries }),
  });
  return new SceneGridItem({ x, y, width, height, body });
}

const child = (panel) =>
  panel.type === 'row'
    ? new SceneGridRow({
        title: panel.title, x: 0, y: panel.gridPos.y, isCollapsed: panel.collapsed, children: panel.panels.map(item),
      })
    : item(panel);

async function main() {
  const board = await (await fetch(`boards/${asked.get('board')}.json`)).json();
  const tables = board.panels.filter((panel) => panel.type === 'table' && panel.targets.length > 1);
  const joined = new Set(tables.flatMap((panel) => panel.targets.map((target) => target.expr)));
  window.several = (target) => joined.has(target.expr);
  const source = new Prometheus(asked.get('prometheus'), SETTINGS);
  sceneUtils.registerRuntimeDataSource({ dataSource: source });
  start(source, SETTINGS);
  register();
  const at = (name) => new Date(Number(asked.get(name))).toISOString();
  window.scene = new EmbeddedScene({
    $timeRange: new SceneTimeRange({ from: at('from'), to: at('to'), timeZone: 'utc' }),
    $variables: new SceneVariableSet({ variables: board.templating.list.map(variable) }),
    controls: [new VariableValueSelectors({})],
    body: new SceneGridLayout({ children: board.panels.map(child) }),
  });
  createRoot(document.getElementById('root')).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles isExtensionSidebarOpen={false} />
      <h3 style={{ margin: '8px 16px 0' }}>{board.title}</h3>
      <MemoryRouter><window.scene.Component model={window.scene} /></MemoryRouter>
    </ThemeContext.Provider>,
  );
}

main().catch((error) => {
  console.error('MAIN', error.stack);
});
