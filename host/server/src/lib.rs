//! HTTP: the OpenAI API, the admin API, metrics.
