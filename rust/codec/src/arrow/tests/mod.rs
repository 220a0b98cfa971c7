mod record_columns;
mod rows;
