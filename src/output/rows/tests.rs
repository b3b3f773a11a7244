use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Array, ListArray, NullArray, StringArray, StringViewArray,
    StructArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Int32Type};

use super::*;

fn frames() -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("name", DataType::Utf8View, false),
        Field::new("line", DataType::Int64, false),
    ]);
    let names: ArrayRef = Arc::new(StringViewArray::from(vec!["f\"", "g"]));
    let lines: ArrayRef = Arc::new(Int64Array::from(vec![1, -1]));
    let frames = StructArray::new(fields.clone(), vec![names, lines], None);
    let item = Arc::new(Field::new("item", DataType::Struct(fields), false));
    Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([2, 0, 0]), Arc::new(frames), None))
}

fn sample() -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        (
            "size",
            Arc::new(Int64Array::from(vec![Some(9_007_199_254_740_993), None, Some(-5)])) as ArrayRef,
            true,
        ),
        ("share", Arc::new(Float64Array::from(vec![Some(0.1), Some(f64::NAN), None])), true),
        ("name", Arc::new(StringViewArray::from(vec![Some("a,\"b\"\nc"), Some(""), None])), true),
        ("frames", frames(), true),
    ])
    .unwrap()
}

fn written(format: Format, batch: &RecordBatch, width: Option<usize>) -> String {
    let mut writer = RowWriter::new(format, &batch.schema(), width, Vec::new()).unwrap();
    writer.write(batch).unwrap();
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

#[test]
fn json_keeps_integers_and_has_null_for_what_is_no_number() {
    assert_eq!(
        written(Format::Json, &sample(), None),
        concat!(
            "[\n",
            r#"{"size":9007199254740993,"share":0.1,"name":"a,\"b\"\nc","frames":[{"name":"f\"","line":1},{"name":"g","line":-1}]},"#,
            "\n",
            r#"{"size":null,"share":null,"name":"","frames":[]},"#,
            "\n",
            r#"{"size":-5,"share":null,"name":null,"frames":[]}"#,
            "\n]\n"
        )
    );
}

#[test]
fn csv_quotes_what_needs_it_and_tells_null_from_empty() {
    assert_eq!(
        written(Format::Csv, &sample(), None),
        concat!(
            "size,share,name,frames\n",
            "9007199254740993,0.1,\"a,\"\"b\"\"\nc\",",
            r#""[{""name"":""f\"""",""line"":1},{""name"":""g"",""line"":-1}]""#,
            "\n,NaN,\"\",[]\n-5,,,[]\n"
        )
    );
}

#[test]
fn a_table_aligns_numbers_and_keeps_one_row_on_one_line() {
    let table = written(Format::Table, &sample(), None);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines,
        [
            "            size  share  name      frames",
            &format!("{}  {}  {}  {}", "-".repeat(16), "-".repeat(5), "-".repeat(8), "-".repeat(48)),
            r#"9007199254740993    0.1  a,"b"\nc  [{"name":"f\"","line":1},{"name":"g","line":-1}]"#,
            "            NULL    NaN            []",
            "              -5   NULL  NULL      []",
        ]
    );
}

#[test]
fn an_empty_result_still_says_its_columns() {
    let empty = sample().slice(0, 0);
    assert_eq!(written(Format::Json, &empty, None), "[]\n");
    assert_eq!(written(Format::Csv, &empty, None), "size,share,name,frames\n");
    assert_eq!(
        written(Format::Table, &empty, None),
        "size  share  name  frames\n----  -----  ----  ------\n"
    );
}

#[test]
fn a_terminal_shortens_texts_and_never_numbers() {
    let table = written(Format::Table, &sample(), Some(50));
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "            size  share  name      frames");
    assert_eq!(lines[2], r#"9007199254740993    0.1  a,"b"\nc  [{"name":"f\""…"#);
    let narrow = written(Format::Table, &sample(), Some(20));
    assert!(narrow.lines().all(|line| line.chars().count() <= 20), "{narrow}");
}

#[test]
fn columns_of_one_name_stay_two_keys() {
    let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let fields = ["id", "id", "id_2"].map(|name| Field::new(name, DataType::Int64, false));
    let batch = RecordBatch::try_new(
        Arc::new(Schema::new(fields.to_vec())),
        vec![Arc::clone(&one), Arc::clone(&one), one],
    )
    .unwrap();
    assert_eq!(written(Format::Json, &batch, None), "[\n{\"id\":1,\"id_3\":1,\"id_2\":1}\n]\n");
}

#[test]
fn null_is_null_also_in_a_dictionary_and_without_a_type() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![None, Some("a")]));
    let dictionary = DictionaryArray::<Int32Type>::new(vec![0, 1].into(), texts);
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("a", Arc::new(NullArray::new(2)) as ArrayRef, true),
        ("b", Arc::new(dictionary), true),
    ])
    .unwrap();
    assert_eq!(written(Format::Csv, &batch, None), "a,b\n,\n,a\n");
    assert_eq!(
        written(Format::Json, &batch, None),
        "[\n{\"a\":null,\"b\":null},\n{\"a\":null,\"b\":\"a\"}\n]\n"
    );
}

fn bytes(format: Format, batches: &[RecordBatch], schema: &Schema) -> Vec<u8> {
    let mut writer = RowWriter::new(format, schema, None, Vec::new()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap()
}

fn arrow(bytes: &[u8]) -> (Arc<Schema>, Vec<RecordBatch>) {
    let reader = arrow::ipc::reader::StreamReader::try_new(bytes, None).unwrap();
    (reader.schema(), reader.map(Result::unwrap).collect())
}

fn parquet(bytes: &[u8]) -> (Arc<Schema>, Vec<RecordBatch>) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let schema = Arc::clone(builder.schema());
    (schema, builder.build().unwrap().map(Result::unwrap).collect())
}

#[test]
fn ndjson_is_one_object_on_each_line() {
    assert_eq!(
        written(Format::Ndjson, &sample().slice(1, 2), None),
        concat!(
            r#"{"size":null,"share":null,"name":"","frames":[]}"#,
            "\n",
            r#"{"size":-5,"share":null,"name":null,"frames":[]}"#,
            "\n"
        )
    );
}

#[test]
fn markdown_keeps_a_row_on_one_line() {
    assert_eq!(
        written(Format::Markdown, &sample(), None),
        concat!(
            "| size | share | name | frames |\n",
            "| ---: | ---: | --- | --- |\n",
            r#"| 9007199254740993 | 0.1 | a,"b"\nc | [{"name":"f\\"","line":1},{"name":"g","line":-1}] |"#,
            "\n| NULL | NaN |  | [] |\n| -5 | NULL | NULL | [] |\n"
        )
    );
    let header = "| size | share | name | frames |\n| ---: | ---: | --- | --- |\n";
    assert_eq!(written(Format::Markdown, &sample().slice(0, 0), None), header);
}

#[test]
fn binary_formats_hold_the_same_rows_in_types_that_every_reader_knows() {
    let sample = sample();
    let batches = [sample.slice(0, 2), sample.slice(2, 1)];
    for (format, read) in
        [(Format::Arrow, arrow as fn(&[u8]) -> (Arc<Schema>, Vec<RecordBatch>)), (Format::Parquet, parquet)]
    {
        let (schema, rows) = read(&bytes(format, &batches, &sample.schema()));
        let types: Vec<String> = schema.fields().iter().map(|field| field.data_type().to_string()).collect();
        assert_eq!(types[..3], ["Int64", "Float64", "Utf8"], "{format:?}");
        assert!(types[3].contains("Utf8") && !types[3].contains("View"), "{format:?}: {}", types[3]);
        let rows = arrow::compute::concat_batches(&schema, &rows).unwrap();
        assert_eq!(written(Format::Json, &rows, None), written(Format::Json, &sample, None), "{format:?}");

        let (empty, rows) = read(&bytes(format, &[], &sample.schema()));
        assert_eq!(empty.fields(), schema.fields(), "{format:?}");
        assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    }
}

#[test]
fn columns_of_one_name_stay_two_columns_in_parquet() {
    let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let fields = ["id", "id"].map(|name| Field::new(name, DataType::Int64, false));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(&one), one]).unwrap();
    let (schema, rows) = parquet(&bytes(Format::Parquet, &[batch], &schema));
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["id", "id_2"]);
    assert_eq!(rows[0].num_rows(), 1);
}

#[test]
fn a_file_name_says_its_format() {
    for (name, format) in [
        ("rows.json", Some(Format::Json)),
        ("rows.JSONL", Some(Format::Ndjson)),
        ("rows.md", Some(Format::Markdown)),
        ("rows.arrows", Some(Format::Arrow)),
        ("a/rows.parquet", Some(Format::Parquet)),
        ("rows.txt", None),
        ("rows", None),
    ] {
        assert_eq!(Format::of_name(Path::new(name)), format, "{name}");
    }
}
