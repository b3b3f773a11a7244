//! SQL over a store. The only module that names DataFusion; its API is blocking.
