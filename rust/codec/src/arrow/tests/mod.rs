mod page;
mod rows;
