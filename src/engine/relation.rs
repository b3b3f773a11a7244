//! The relations of `sql/` as one snapshot has them, each planned when a query first names it.
//!
//! Planning all of them takes longer than most queries do. A relation is planned after those it names, so that no plan is
//! made in the middle of another.

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};

use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::datasource::{TableType, ViewTable};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{DataFrame, SessionContext};

use super::kept::Kept;
use super::sql_macro::SqlMacro;
use super::table_function::{TableFunction, bind};
use super::value::Value;

/// A relation of a snapshot.
pub(super) struct Relation {
    pub(super) definition: SqlMacro,
    /// Those it stands among, and where.
    among: Weak<Relations>,
    place: usize,
    planned: OnceLock<Planned>,
}

/// What a relation is once it is planned.
pub(super) struct Planned {
    /// Its statement, with a placeholder for every parameter.
    pub(super) plan: LogicalPlan,
    /// What its bare name stands for: all parameters have their defaults, and there is no limit.
    pub(super) view: Arc<dyn TableProvider>,
}

impl Relation {
    /// Its plan; made now, unless it was needed before.
    pub(super) async fn planned(&self) -> Result<&Planned> {
        if self.planned.get().is_none()
            && let Some(among) = self.among.upgrade()
        {
            among.plan(self.place).await?;
        }
        if let Some(planned) = self.planned.get() {
            Ok(planned)
        } else {
            internal_err!("`{}` is planned for an engine that is gone", self.definition.name)
        }
    }

    /// Its rows, with these values for all parameters.
    pub(super) async fn frame(
        &self,
        context: &SessionContext,
        values: &[(&'static str, Value)],
    ) -> Result<DataFrame> {
        let planned = self.planned().await?;
        if self.definition.kept {
            return context.read_table(Arc::clone(&planned.view));
        }
        context.execute_logical_plan(bind(&planned.plan, &self.definition, values)?).await
    }
}

impl Debug for Relation {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "Relation({})", self.definition.name)
    }
}

/// Relations that see each other, a relation after those it names.
pub(super) struct Relations {
    list: Vec<Arc<Relation>>,
    places: HashMap<&'static str, usize>,
    /// The session as they see it.
    state: SessionState,
}

impl Relations {
    /// The relations of these definitions, in a session to which they are added by their bare names.
    pub(super) fn new(definitions: Vec<SqlMacro>, mut state: SessionState) -> Arc<Self> {
        Arc::new_cyclic(|among| {
            let relation = |(place, definition)| {
                Arc::new(Relation { definition, among: Weak::clone(among), place, planned: OnceLock::new() })
            };
            let list: Vec<Arc<Relation>> = definitions.into_iter().enumerate().map(relation).collect();
            for relation in &list {
                state.register_udtf(relation.definition.name, Arc::new(TableFunction::new(relation)));
            }
            let places = list.iter().map(|relation| (relation.definition.name, relation.place)).collect();
            Self { list, places, state }
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.list.iter()
    }

    /// Plans the relation at a place, and before it what it is made of.
    async fn plan(&self, place: usize) -> Result<()> {
        let mut needed = vec![false; self.list.len()];
        if let Some(first) = needed.get_mut(place) {
            *first = true;
        }
        for relation in self.list.iter().take(place + 1).rev() {
            let is_needed = needed.get(relation.place).copied().unwrap_or_default();
            if is_needed && relation.planned.get().is_none() {
                // A column of the same name as a relation makes one plan more, and no harm.
                let named = words(relation.definition.body).filter_map(|word| self.places.get(word));
                for named in named.filter(|named| **named < relation.place) {
                    if let Some(named) = needed.get_mut(*named) {
                        *named = true;
                    }
                }
            }
        }
        let needed = self.list.iter().zip(needed).filter(|(_, is_needed)| *is_needed);
        for (relation, _) in needed.filter(|(relation, _)| relation.planned.get().is_none()) {
            let definition = &relation.definition;
            let plan = self.state.create_logical_plan(definition.body).await?;
            let view = bind(&plan, definition, &definition.unrestricted())?;
            let view: Arc<dyn TableProvider> = if definition.kept {
                Arc::new(Kept::new(view))
            } else {
                Arc::new(ViewTable::new(view, Some(definition.body.to_owned())))
            };
            // Who comes second takes what is there: what is kept must be kept once.
            let _planned_meanwhile = relation.planned.set(Planned { plan, view });
        }
        Ok(())
    }
}

/// Whatever may be a name in a statement.
pub(super) fn words(statement: &str) -> impl Iterator<Item = &str> {
    statement.split(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric())
}

/// The names of a snapshot: its tables, and its relations.
#[derive(Debug, Default)]
pub(super) struct Names {
    tables: MemorySchemaProvider,
    relations: RwLock<HashMap<&'static str, Weak<Relation>>>,
}

impl Names {
    pub(super) fn add(&self, relation: &Arc<Relation>) {
        let mut relations = self.relations.write().unwrap_or_else(PoisonError::into_inner);
        relations.insert(relation.definition.name, Arc::downgrade(relation));
    }

    fn relation(&self, name: &str) -> Option<Arc<Relation>> {
        self.relations.read().unwrap_or_else(PoisonError::into_inner).get(name)?.upgrade()
    }
}

// As `async_trait` would write it.
impl SchemaProvider for Names {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.tables.table_names();
        let relations = self.relations.read().unwrap_or_else(PoisonError::into_inner);
        names.extend(relations.keys().map(|name| (*name).to_owned()));
        names
    }

    fn table<'this, 'name, 'all>(
        &'this self,
        name: &'name str,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Arc<dyn TableProvider>>, DataFusionError>> + Send + 'all>>
    where
        'this: 'all,
        'name: 'all,
        Self: 'all,
    {
        Box::pin(async move {
            match self.relation(name) {
                Some(relation) => Ok(Some(Arc::clone(&relation.planned().await?.view))),
                None => self.tables.table(name).await,
            }
        })
    }

    fn table_type<'this, 'name, 'all>(
        &'this self,
        name: &'name str,
    ) -> Pin<Box<dyn Future<Output = Result<Option<TableType>>> + Send + 'all>>
    where
        'this: 'all,
        'name: 'all,
        Self: 'all,
    {
        Box::pin(async move {
            match self.relation(name) {
                Some(_) => Ok(Some(TableType::View)),
                None => self.tables.table_type(name).await,
            }
        })
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        self.tables.register_table(name, table)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.table_exist(name) || self.relation(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::engine::{Engine, Options};

    fn planned(engine: &Engine) -> BTreeSet<&'static str> {
        let relations = engine.macros.values().filter(|relation| relation.planned.get().is_some());
        relations.map(|relation| relation.definition.name).collect()
    }

    #[test]
    fn only_what_a_query_names_is_planned_with_what_it_is_made_of() {
        let engine = Engine::in_memory(HashMap::new(), Options::default()).unwrap();
        assert!(planned(&engine).is_empty());
        engine.relation("churn", &[]).unwrap();
        assert_eq!(planned(&engine), BTreeSet::from(["churn"]));
        let rows = engine.query("SELECT * FROM memory_curve(device => 0)").unwrap();
        rows.for_each(|batch| assert_eq!(batch.unwrap().num_rows(), 0));
        let curve = ["_memory_base", "_memory_slices", "_rounding_excess", "_slice_changes", "memory_curve"];
        let below =
            ["_event_changes", "_event_rules", "_event_signs", "_scale", "_sized_allocations", "churn"];
        assert_eq!(planned(&engine), curve.into_iter().chain(below).collect());
    }

    #[test]
    fn names_are_listed_without_being_planned() {
        let engine = Engine::in_memory(HashMap::new(), Options::default()).unwrap();
        let sql = "SELECT table_type FROM information_schema.tables WHERE table_name = 'churn'";
        let rows: usize = engine.query(sql).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!((rows, planned(&engine).len()), (1, 0));
    }
}
